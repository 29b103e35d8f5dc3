#!/usr/bin/env bash
# MILk with the paper's hyper-parameters on one of its corpora; examples/wmt15_de_en/train.sh and examples/wmt14_en_fr/train.sh call it:
#
#   scripts/train_paper.sh RECIPE SOURCE TARGET UPDATES INTERVAL [--dry-run] [fairseq-train's options]
#
#   UPDATES   the largest number of updates     INTERVAL  updates between two validations and checkpoints
#   DATA, SAVE, LATENCY_WEIGHT, HEAD: see examples/wmt15_de_en/train.sh; the others: scripts/train_nodes.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
here=examples/$1 source=$2 target=$3 updates=$4 interval=$5
shift 5

dry_run=()
[[ ${1:-} == --dry-run ]] && dry_run=(--dry-run) && shift

lambda=${LATENCY_WEIGHT:-0.2}
case ${HEAD:-waiting} in # docs/explanation/recipe.md
  # Updates, not a share: RNMT+ spends its learning rate early, and after 0.3 of the training too little of it would be left.
  waiting) head=(--head-after 6000 --latency-after 6000 --latency-ramp 3000) ;;
  literal) head=(--energy-bias -1 --head-after 0 --latency-after 0 --latency-ramp 0) ;;
  *)
    echo "train.sh: HEAD is '$HEAD': it must be waiting or literal" >&2
    exit 2
    ;;
esac
world=$((${NNODES:-1} * ${GPUS:-8}))
if ((32 % world)); then
  echo "train.sh: the paper's 32 replicas cannot be divided among $world GPUs: NNODES x GPUS must divide 32" >&2
  exit 2
fi

# Another system gets its own folder: otherwise its training would continue from MILk's checkpoints.
name=milk-$lambda
[[ ${HEAD:-waiting} == literal ]] && name+=-literal
for word in "$@"; do name+=_${word#--}; done

paper=(
  --arch milk_rnmt --attention milk --latency-weight "$lambda" --latency-metric dal --noise 4
  --dropout 0.2 --label-smoothing 0.1
  --batch-size 128 --update-freq "$((32 / world))"
)
authors=( # their configuration leaves out training pairs with more than 98 subwords; docs/explanation/cost.md has the memory
  --max-source-positions 98 --max-target-positions 98 --skip-invalid-size-inputs-valid-test
)
rnmt_plus=(
  --optimizer rnmt_adam --adam-betas "(0.9, 0.999)" --adam-eps 1e-6
  --lr 1e-4 --lr-scheduler rnmt_plus --lr-replicas 32 --lr-warmup 500 --lr-decay-start 600000 --lr-decay-end 1200000
  --sentence-avg
)
ours=( # --grouped-shuffling: GPUs get batches of one length at a time, docs/explanation/cost.md
  --grouped-shuffling
  --max-update "$updates" --patience 20 --validate-interval-updates "$interval" --save-interval-updates "$interval"
  --keep-interval-updates 5 --no-epoch-checkpoints --log-format json --log-interval 100 --num-workers 2 --seed 1
)

scripts/train_nodes.sh "${dry_run[@]}" "${DATA:-$here/data/$source-$target/bin}" \
  --source-lang "$source" --target-lang "$target" --user-dir "$PWD/fairseq_milk" --task simultaneous_translation \
  --criterion latency_augmented_label_smoothed_cross_entropy --save-dir "${SAVE:-$here/checkpoints/${name//\//-}}" \
  "${paper[@]}" "${head[@]}" "${authors[@]}" "${rnmt_plus[@]}" "${ours[@]}" "$@"
