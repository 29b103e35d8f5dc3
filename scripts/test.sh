#!/usr/bin/env bash
# Sets up .venv, then lints, type-checks and tests. Arguments go to pytest: scripts/test.sh -k alignment -x
# All three run even if one fails; the exit code says whether all passed. Tests run in parallel: -n0 runs them in one process.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh --simuleval

# The report and the page of `serve` are looked at in a browser where there is one. A machine of its own may be given one, a person's is not touched.
if [[ ${CI:-} == true && $EUID == 0 ]] && ! command -v chromedriver >/dev/null && command -v apt-get >/dev/null; then
  echo "== chromium"
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 || echo "not installed"
fi

failed=()
run() {
  local name=$1
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

# mypy refuses a folder that has no Python file in it.
sources=()
for folder in fairseq_milk tests examples scripts benchmarks; do
  if [[ -n $(find "$folder" -name '*.py' -print -quit 2>/dev/null) ]]; then
    sources+=("$folder")
  fi
done

run ruff .venv/bin/python -m ruff check "${sources[@]}" setup.py
run mypy .venv/bin/python -m mypy "${sources[@]}"
# One thread a worker, or the workers' thread pools fight for the cores. A file is for one worker: its fixtures are made once.
OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 run pytest \
  .venv/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile "$@"

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
