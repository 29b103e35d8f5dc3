"""`python -m benchmarks`: fairseq_milk against its peers, each comparison made within one run.

A row of the table is a function that builds the variants, has `harness` time or weigh them alternately, and says what
their ratio should be.  One file a group of rows; `__main__` runs them and `report` writes them down.
"""
