"""`python -m benchmarks` compares fairseq_milk with its peers, each comparison within one run.

A row of the table is a function that builds the variants, has `harness` measure their time or memory in turns, and sets
the bar for their ratio.  One file per group of rows; `__main__` runs them and `report` writes the results.
"""
