#!/usr/bin/env bash
# Sets up .venv, then checks the format, lints, type-checks and tests:
#
#   scripts/test.sh [--fast] [--coverage] [pytest's arguments]        scripts/test.sh --fast -k alignment -x
#
#   --fast      without the tests marked `slow`: under two minutes instead of a quarter of an hour on two cores
#   --coverage  also prints which lines of fairseq_milk the tests have run
#
# All of them run even if one fails; the exit code says whether all passed. Tests run in parallel: -n0 runs them in one process.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

options=()
while (($#)); do
  case $1 in
    --fast) options+=(-m "not slow") ;;
    --coverage) options+=(--cov --cov-report=term) ;;
    *) break ;;
  esac
  shift
done

bash scripts/setup.sh --simuleval
if [[ " ${options[*]} " == *" --cov "* ]] && ! .venv/bin/python -c 'import pytest_cov' 2>/dev/null; then
  .venv/bin/python -m pip install -q --disable-pip-version-check -c scripts/constraints.txt pytest-cov
fi

# Some tests open the report, or the page of `serve`, in a browser and are skipped without one. It is installed on CI machines only.
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

run "ruff format" .venv/bin/python -m ruff format --check "${sources[@]}" setup.py
run "ruff check" .venv/bin/python -m ruff check "${sources[@]}" setup.py
# mypy reads torch's own types, which differ from version to version.
if [[ -n ${TORCH_VERSION:-} ]]; then
  echo "== mypy: left out, types are checked with the torch in scripts/constraints.txt"
else
  run mypy .venv/bin/python -m mypy "${sources[@]}"
fi
# One thread per worker, or the workers' thread pools compete for the cores. One worker runs the whole of a file, so that its
# fixtures are made once. Files keep their order: the long ones of tests/commands come first, so that both workers end together.
OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 run pytest \
  .venv/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder "${options[@]}" "$@"

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
