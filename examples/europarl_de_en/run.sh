#!/usr/bin/env bash
# Europarl from the folder of .gz files to the curves and the report: prepare, train and decode all systems of sweep.yaml, plot.
#
#   examples/europarl_de_en/run.sh [--jobs 2] [--only 'milk*' offline] [--retrain]
#
#   EUROPARL  the folder of {train,dev,test}.{de,en}.gz; without it examples/europarl_de_en/corpus, which corpus.py makes
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

bash "$root/scripts/prepare.sh" europarl_de_en ${EUROPARL:+--base-url "$EUROPARL"}
failed=0
fairseq-milk sweep "$here/sweep.yaml" "$@" || failed=$?
out=$here/sweep
if [[ -f $out/results.csv && $(wc -l <"$out/results.csv") -gt 1 ]]; then
  for latency in dal al ap; do
    fairseq-milk plot plane "$out/results.csv" --subset test --latency "$latency" --out "$out/$latency.png"
  done
  for subset in test valid; do
    fairseq-milk report "$out/results.csv" --subset "$subset" --title "Europarl, $subset" --out "$out/report-$subset.html"
  done
fi
exit "$failed"
