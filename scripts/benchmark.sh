#!/usr/bin/env bash
# Sets up .venv, then compares fairseq_milk with its peers: scripts/benchmark.sh [--quick] [--only PATTERN] [--record].
# About ten minutes on a quiet machine of two cores. The row against SimulEval needs scripts/setup.sh --simuleval. See --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
PYTHONWARNINGS=ignore exec .venv/bin/python -m benchmarks "$@"
