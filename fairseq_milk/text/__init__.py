"""Conversion between text and the tokens of a model: subwords, tokenisers, vocabularies.  Needs no torch or fairseq."""
