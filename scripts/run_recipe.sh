#!/usr/bin/env bash
# From the corpus of a recipe to its curves and reports: prepare, train and decode the systems of its sweep.yaml, plot.
# examples/multi30k/run.sh and examples/europarl_de_en/run.sh call it:
#
#   scripts/run_recipe.sh RECIPE TITLE BASE_URL SUBSETS [--jobs N] [--only PATTERN ...] [--retrain]
#
#   TITLE     of the reports
#   BASE_URL  the folder of the archives, or empty for the recipe's own address
#   SUBSETS   the data sets to report on, separated by spaces
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
recipe=$1 title=$2 base_url=$3 subsets=$4
shift 4
sweep=$root/examples/$recipe/sweep.yaml
export PYTHONWARNINGS=ignore PATH="$root/.venv/bin:$PATH"

for option in "$@"; do
  case $option in
    -h | --help | --out* | --dry-run | --slurm*)
      echo "run.sh: $option is for 'fairseq-milk sweep $sweep' itself; run.sh takes --jobs, --only and --retrain" >&2
      exit 2
      ;;
  esac
done

bash "$root/scripts/prepare.sh" "$recipe" ${base_url:+--base-url "$base_url"}
failed=0
fairseq-milk sweep "$sweep" "$@" || failed=$?
out=$root/examples/$recipe/$(sed -n 's/^name: *//p' "$sweep")
if [[ -f $out/results.csv && $(wc -l <"$out/results.csv") -gt 1 ]]; then
  for latency in dal al ap; do
    fairseq-milk plot plane "$out/results.csv" --subset test --latency "$latency" --out "$out/$latency.png"
  done
  for subset in $subsets; do
    [[ $subset == test ]] || fairseq-milk plot plane "$out/results.csv" --subset "$subset" --out "$out/dal-$subset.png"
    fairseq-milk report "$out/results.csv" --subset "$subset" --title "$title, $subset" --out "$out/report-$subset.html"
  done
fi
exit "$failed"
