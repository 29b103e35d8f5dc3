#!/usr/bin/env bash
# Multi30k from the data set's files to the curves and the report: prepare, train and decode all systems of sweep.yaml, plot.
#
#   examples/multi30k/run.sh [--jobs 2] [--only 'milk*' offline] [--retrain]
#
#   MULTI30K  the folder of the data set's .gz files; without it they are downloaded
#
# Interrupted, it goes on when it is run again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export PYTHONWARNINGS=ignore PATH="$root/.venv/bin:$PATH"

for option in "$@"; do
  case $option in
    -h | --help | --out* | --dry-run | --slurm*)
      echo "run.sh: $option is for 'fairseq-milk sweep $here/sweep.yaml' itself; run.sh takes --jobs, --only and --retrain" >&2
      exit 2
      ;;
  esac
done

bash "$root/scripts/prepare.sh" multi30k ${MULTI30K:+--base-url "$MULTI30K"}
failed=0
fairseq-milk sweep "$here/sweep.yaml" "$@" || failed=$?
out=$here/sweep-de-en
if [[ -f $out/results.csv && $(wc -l <"$out/results.csv") -gt 1 ]]; then
  for latency in dal al ap; do
    fairseq-milk plot plane "$out/results.csv" --subset test --latency "$latency" --out "$out/$latency.png"
  done
  for subset in test1 test2; do
    fairseq-milk plot plane "$out/results.csv" --subset "$subset" --out "$out/dal-$subset.png"
  done
  fairseq-milk compare "$out/results.csv" milk wait-k --subset test >"$out/compare-test.md" || true # systems may be missing
  fairseq-milk compare "$out/results.csv" milk-val wait-k-val --subset valid >"$out/compare-valid.md" || true
  for subset in test test1 test2 valid; do
    fairseq-milk report "$out/results.csv" --subset "$subset" --title "Multi30k, $subset" --out "$out/report-$subset.html"
  done
fi
exit "$failed"
