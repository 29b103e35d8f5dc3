#!/usr/bin/env bash
# Downloads a corpus and binarises it for fairseq, into examples/RECIPE/data/PAIR. Run again, it continues where it stopped.
#
#   scripts/prepare.sh multi30k | europarl_de_en | wmt15_de_en | wmt14_en_fr [options]
#
#   --base-url ADDRESS   a mirror, file://... or a folder with the archives, instead of their public address
#   --out FOLDER         another output folder    --workers N   processes (default: one per core)
#   --dry-run            print what would be downloaded and done       --help   all options
#
# The exit code is 3 if the sources are not as long as the paper's: latency cannot then be compared with its tables.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
recipe=${1:-}
if [[ ! -f $root/examples/$recipe/prepare.py ]]; then
  echo "usage: scripts/prepare.sh multi30k | europarl_de_en | wmt15_de_en | wmt14_en_fr [options]" >&2
  exit 2
fi
shift
bash "$root/scripts/setup.sh"
export PYTHONWARNINGS=ignore PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec "$root/.venv/bin/python" -m "examples.$recipe.prepare" "$@"
