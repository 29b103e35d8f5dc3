#!/usr/bin/env bash
# Builds the documentation from docs/, the parsers and the docstrings into site/. A broken link, or a page without a place
# in the navigation, fails.
#
#   scripts/docs.sh            site/index.html, which opens without a server (but for its search)
#   scripts/docs.sh --serve    on http://127.0.0.1:8001/, built again whenever a page changes
#
# Once .venv-docs is there (scripts/setup.sh --docs) nothing is downloaded, neither for building nor for reading.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "$#:${1:-}" in
  0:) command=(build --strict --quiet --clean) ;;
  1:--serve) command=(serve --dev-addr 127.0.0.1:8001) ;;
  *)
    echo "usage: scripts/docs.sh [--serve]" >&2
    exit 2
    ;;
esac
bash scripts/setup.sh --docs
# mkdocs-material prints advertisements for its successor unless it is told not to.
NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -W ignore -m mkdocs "${command[@]}"
[[ ${command[0]} == serve ]] || echo "site/index.html"
