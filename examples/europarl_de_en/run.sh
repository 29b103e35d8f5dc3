#!/usr/bin/env bash
# Europarl from the folder of .gz files to the curves and the reports: prepare, train and decode all systems of sweep.yaml, plot.
#
#   examples/europarl_de_en/run.sh [--jobs 2] [--only 'milk*' offline] [--retrain]
#
#   EUROPARL  the folder of {train,dev,test}.{de,en}.gz (default: examples/europarl_de_en/corpus, which corpus.py makes)
#
# Run again after an interruption, it continues where it stopped.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/../../scripts/run_recipe.sh" europarl_de_en Europarl "${EUROPARL:-}" "test valid" "$@"
