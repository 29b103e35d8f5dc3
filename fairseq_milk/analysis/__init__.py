"""Figures and the report, from the files of scoring and sweep."""

import logging

# fairseq sets the root logger to DEBUG, at which these libraries log every font and part of a picture
for name in ("matplotlib", "PIL"):
    logging.getLogger(name).setLevel(logging.WARNING)
