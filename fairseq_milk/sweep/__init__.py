"""`fairseq-milk sweep`: several systems over their grids, trained and decoded with the stock fairseq commands."""
