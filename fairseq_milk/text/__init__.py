"""Text on its way into a model and out of it: subwords, tokenisers, dictionaries.  Needs neither torch nor fairseq."""
