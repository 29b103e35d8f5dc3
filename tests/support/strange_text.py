"""Tokens that HTML, LaTeX, a path or a terminal would interpret."""

NASTY = ["<script>alert(1)</script>", "&amp;", "$x$", "\\$", r"\textbf{x}", "../../x", '"', "'", "]]>", "<!--",
         "\x00", "\x1b[31m", "\ud800", "\ufffe", "a\nb", "_x", "\u202eabc"]  # fmt: skip
