#!/usr/bin/env bash
# 32 data-parallel ranks of a tiny MILk on this machine for a few updates, as the paper's 32 GPUs would run, and one process
# that does the same by --update-freq 32; ends with the largest difference of a parameter between the two.
# Run by hand: it needs about 10 GB of memory and starts 33 processes. Its output is recorded in examples/README.md.
#
#   scripts/train_32_ranks.sh [RANKS] [UPDATES]        (32 and 4)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ranks=${1:-32}
updates=${2:-4}
[[ -x .venv/bin/python ]] && PATH=$PWD/.venv/bin:$PATH
export PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python - "$work" "$((ranks * 8))" <<'PY'
import random, sys
folder, sentences = sys.argv[1], int(sys.argv[2])
for split, size in (("train", sentences), ("valid", 64)):
    numbers = [[random.randrange(20) for _ in range(random.randint(3, 9))] for _ in range(size)]
    for language, letter in (("de", "a"), ("en", "b")):
        with open(f"{folder}/{split}.{language}", "w") as file:
            file.writelines(" ".join(f"{letter}{n}" for n in sentence) + "\n" for sentence in numbers)
PY
fairseq-preprocess -s de -t en --trainpref "$work/train" --validpref "$work/valid" --destdir "$work/bin" >/dev/null 2>&1

# Ranks draw noise and dropout of their own (host/rank_seed.py), so that the comparison needs a model without them.
options=("$work/bin" --user-dir "$PWD/fairseq_milk" --task simultaneous_translation --arch milk_rnmt_tiny
  --embed-dim 16 --hidden-size 16 --energy-dim 16 --noise 0 --dropout 0
  --criterion latency_augmented_label_smoothed_cross_entropy --latency-weight 0.2
  --optimizer rnmt_adam --lr 0.001 --lr-scheduler rnmt_plus --lr-replicas 32 --batch-size 4 --max-update "$updates"
  --disable-validation --no-epoch-checkpoints --num-workers 0 --log-format simple --log-interval 1)

echo "== $ranks ranks"
start=$SECONDS
scripts/train_cpu_ranks.sh "$ranks" "${options[@]}" --save-dir "$work/ranks" >"$work/log" 2>&1 || {
  tail -n 30 "$work/log" >&2
  exit 1
}
grep -E 'training on|train_inner|done training' "$work/log" | sed 's/.* | INFO | //' | sort -u
echo "$((SECONDS - start)) s"
echo "== one process, --update-freq $ranks"
fairseq-train "${options[@]}" --cpu --update-freq "$ranks" --save-dir "$work/one" 2>&1 |
  grep -E 'training on|train_inner' | sed 's/.* | INFO | //'

python - "$work/ranks/checkpoint_last.pt" "$work/one/checkpoint_last.pt" <<'PY'
import sys, torch
one, other = (torch.load(path)["model"] for path in sys.argv[1:])
print("largest difference of a parameter:", max(float((one[name] - other[name]).abs().max()) for name in one))
PY
