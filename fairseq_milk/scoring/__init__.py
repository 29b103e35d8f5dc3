"""Records of translated sentences and their scores, each with a signature.

`records` and `latency` need torch only, `score` also needs sacreBLEU, and `scorer` needs fairseq.
"""
