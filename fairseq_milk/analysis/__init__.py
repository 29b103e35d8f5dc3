"""Figures and the report, from what scoring and sweep write."""

import logging

# fairseq sets the root logger to DEBUG, where matplotlib tells about every font, beginning with its import
logging.getLogger("matplotlib").setLevel(logging.WARNING)
