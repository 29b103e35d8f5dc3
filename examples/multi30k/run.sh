#!/usr/bin/env bash
# Multi30k from the data set's files to the curves and the report: prepare, train and decode all systems of sweep.yaml, plot.
#
#   examples/multi30k/run.sh [options of fairseq-milk sweep, e.g. --jobs 2 --only 'milk*' offline]
#
#   MULTI30K  the folder of the data set's .gz files; without it they are downloaded
#
# Interrupted, it goes on when it is run again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export PYTHONWARNINGS=ignore PATH="$root/.venv/bin:$PATH"

bash "$root/scripts/prepare.sh" multi30k ${MULTI30K:+--base-url "$MULTI30K"}
failed=0
fairseq-milk sweep "$here/sweep.yaml" "$@" || failed=$?
table=$here/sweep-de-en/results.csv
if [[ -f $table && $(wc -l <"$table") -gt 1 ]]; then
  for latency in dal al ap; do
    fairseq-milk plot plane "$table" --latency "$latency" --out "${table%/*}/$latency.png"
  done
  fairseq-milk report "$table" --out "${table%/*}/report.html"
fi
exit "$failed"
