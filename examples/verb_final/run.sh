#!/usr/bin/env bash
# The study of examples/verb_final: trains, decodes and compares every system of recipe.py. --help shows the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bash "$root/scripts/setup.sh"
export PYTHONWARNINGS=ignore PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec "$root/.venv/bin/python" -m examples.verb_final.study "$@"
