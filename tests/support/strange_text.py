"""Tokens that a file format could take for something else than text."""

NASTY = ["<script>alert(1)</script>", "&amp;", "$x$", "\\$", r"\textbf{x}", "../../x", '"', "'", "]]>", "<!--",
         "\x00", "\x1b[31m", "\ud800", "\ufffe", "a\nb", "_x", "\u202eabc"]  # fmt: skip
