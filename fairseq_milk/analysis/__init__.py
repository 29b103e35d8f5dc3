"""Reading what a generation left behind, and showing it."""

from .generate_log import GenerateLog, read_generate_log

__all__ = ["GenerateLog", "read_generate_log"]
