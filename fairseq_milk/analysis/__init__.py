"""Reading what a generation left behind, and showing it."""

import logging

from .generate_log import GenerateLog, read_generate_log

__all__ = ["GenerateLog", "read_generate_log"]

# fairseq sets the root logger to DEBUG, where matplotlib tells about every font, beginning with its import
logging.getLogger("matplotlib").setLevel(logging.WARNING)
