#!/usr/bin/env bash
# The long programs behind RELIABILITY.md, one after the other, with their figures on standard output:
#
#   scripts/faults.sh [kills] [soak] [endless] [numerics] [fuzz] [learning] [exported] [full-disk]     all but full-disk, which needs root, by default
#
#   kills      20 SIGKILLs of a training, half of them in the middle of a write; it must end like an uninterrupted one
#   soak       10,000 sentences through fairseq-generate and through one `fairseq-milk stream`
#   endless    one sentence of 100,000 tokens through `fairseq-milk stream`
#   numerics   10,000 examples of every property in tests/unit/test_numerics.py
#   fuzz       20,000 damaged and hostile files of every kind that is read, and 5,000 flipped bits
#   learning   tests/commands/test_verb_final_learning.py passes, and fails for each of three faults in the code
#   exported   tokens and delays of exported models and their checkpoints, every mechanism, 1,000 verb-final sentences
#   full-disk  a training on a disk of 1 MB
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
python=.venv/bin/python

for run in "${@:-kills soak endless numerics fuzz learning exported}"; do
  for name in $run; do
    echo "== $name"
    case $name in
      kills) $python -m tests.reliability.kill_training --kills 20 ;;
      soak) $python -m tests.reliability.soak --sentences 1000 --passes 10 ;;
      endless) $python -m tests.reliability.endless --tokens 100000 ;;
      numerics) HYPOTHESIS_PROFILE=long $python -m pytest -q -p no:cacheprovider --timeout 0 tests/unit/test_numerics.py ;;
      fuzz) $python -m tests.reliability.fuzz ;;
      learning) $python -m tests.reliability.learning_faults ;;
      exported) $python -m tests.reliability.exported_equality ;;
      full-disk) $python -m tests.reliability.full_disk ;;
      *) echo "scripts/faults.sh: there is no run '$name'" >&2 && exit 2 ;;
    esac
  done
done
