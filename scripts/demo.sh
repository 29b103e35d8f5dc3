#!/usr/bin/env bash
# Sets up .venv, then trains, decodes and draws a simultaneous translator of a small language whose best schedule is known.
# A few minutes on two cores; run again, it reuses what is complete. Output goes to demo/ (--fast: demo-fast/), see --help.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/scripts/setup.sh"
export PYTHONWARNINGS=ignore PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec "$root/.venv/bin/python" -m examples.verb_final.demo "$@"
