#!/usr/bin/env bash
# MILk on WMT15 German-English as in the paper, on 4 nodes with 8 GPUs each. On every node:
#
#   NNODES=4 NODE_RANK=0 MASTER_ADDR=first-node examples/wmt15_de_en/train.sh [--dry-run] [fairseq-train's options]
#
#   DATA            what scripts/prepare.sh wmt15_de_en made (examples/wmt15_de_en/data/de-en/bin)
#   SAVE            where checkpoints go (examples/wmt15_de_en/checkpoints/milk-$LATENCY_WEIGHT)
#   LATENCY_WEIGHT  lambda (0.2)
#   NNODES, GPUS, NODE_RANK, MASTER_ADDR, MASTER_PORT   see scripts/train_nodes.sh
#
# The batch is 4096 sentence pairs whatever the number of GPUs: fewer of them make more steps an update. Options at the end
# win, e.g. for the other systems of the paper's tables:
#
#   train.sh --attention waitk --wait-k 6        train.sh --arch rnmt_offline --attention soft
#   train.sh --attention mocha --chunk-size 8
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=examples/wmt15_de_en

dry_run=()
[[ ${1:-} == --dry-run ]] && dry_run=(--dry-run) && shift

lambda=${LATENCY_WEIGHT:-0.2}
world=$((${NNODES:-1} * ${GPUS:-8}))
if ((32 % world)); then
  echo "train.sh: the paper's 32 replicas cannot be shared out over $world GPUs: NNODES x GPUS must divide 32" >&2
  exit 2
fi

paper=(
  --arch milk_rnmt --attention milk --latency-weight "$lambda" --latency-metric dal --noise 4
  --dropout 0.2 --label-smoothing 0.1
  --batch-size 128 --update-freq "$((32 / world))"
)
rnmt_plus=(
  --optimizer rnmt_adam --adam-betas "(0.9, 0.999)" --adam-eps 1e-6
  --lr 1e-4 --lr-scheduler rnmt_plus --lr-replicas 32 --lr-warmup 500 --lr-decay-start 600000 --lr-decay-end 1200000
  --sentence-avg
)
ours=(
  --max-update 60000 --patience 20 --validate-interval-updates 1000 --save-interval-updates 1000
  --keep-interval-updates 5 --no-epoch-checkpoints --log-format json --log-interval 100 --num-workers 2 --seed 1
)

scripts/train_nodes.sh "${dry_run[@]}" "${DATA:-$here/data/de-en/bin}" --source-lang de --target-lang en \
  --user-dir "$PWD/fairseq_milk" --task simultaneous_translation \
  --criterion latency_augmented_label_smoothed_cross_entropy --save-dir "${SAVE:-$here/checkpoints/milk-$lambda}" \
  "${paper[@]}" "${rnmt_plus[@]}" "${ours[@]}" "$@"
