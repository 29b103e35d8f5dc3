"""Checks of a checkpoint, or of a training before it starts: one file per check; `table` has all of them."""
