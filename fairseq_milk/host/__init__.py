"""Everything that touches the insides of fairseq: registration, checkpoints, data files and every patch."""
