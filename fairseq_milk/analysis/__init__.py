"""Figures and the report, from what scoring and sweep write."""

import logging

# fairseq sets the root logger to DEBUG, where these log every font and every part of a picture
for name in ("matplotlib", "PIL"):
    logging.getLogger(name).setLevel(logging.WARNING)
