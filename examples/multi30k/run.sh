#!/usr/bin/env bash
# Multi30k from the data set's files to the curves and the reports: prepare, train and decode all systems of sweep.yaml, plot.
#
#   examples/multi30k/run.sh [--jobs 2] [--only 'milk*' offline] [--retrain]
#
#   MULTI30K  the folder of the data set's .gz files (default: they are downloaded)
#
# Run again after an interruption, it continues where it stopped.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
failed=0
bash "$root/scripts/run_recipe.sh" multi30k Multi30k "${MULTI30K:-}" "test test1 test2 valid" "$@" || failed=$?
out=$root/examples/multi30k/sweep-de-en
if [[ $failed != 2 && -f $out/results.csv ]]; then # systems may be missing
  milk="$root/.venv/bin/fairseq-milk"
  "$milk" compare "$out/results.csv" milk wait-k --subset test >"$out/compare-test.md" || true
  "$milk" compare "$out/results.csv" milk-val wait-k-val --subset valid >"$out/compare-valid.md" || true
fi
exit "$failed"
