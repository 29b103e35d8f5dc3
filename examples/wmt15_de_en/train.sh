#!/usr/bin/env bash
# MILk on WMT15 German-English as in the paper, on 4 nodes with 8 GPUs each. On every node:
#
#   NNODES=4 NODE_RANK=0 MASTER_ADDR=first-node examples/wmt15_de_en/train.sh [--dry-run] [fairseq-train's options]
#
#   DATA            what scripts/prepare.sh wmt15_de_en made (examples/wmt15_de_en/data/de-en/bin)
#   SAVE            where checkpoints go (examples/wmt15_de_en/checkpoints/milk-$LATENCY_WEIGHT and the options at the end)
#   LATENCY_WEIGHT  lambda (0.2)
#   HEAD            waiting (default): soft attention for 6,000 updates, then the head and lambda begin;
#                   literal: r = -1, noise and lambda from the first update, as the paper can be read (docs/explanation/recipe.md)
#   NNODES, GPUS, NODE_RANK, MASTER_ADDR, MASTER_PORT   see scripts/train_nodes.sh
#
# The batch is 4096 sentence pairs whatever the number of GPUs: with fewer GPUs an update has more steps. Options at the end
# win, e.g. for the other systems of the paper's tables, which have no latency term:
#
#   train.sh --attention waitk --wait-k 6        train.sh --arch rnmt_offline --attention soft
#   train.sh --attention mocha --chunk-size 8 --latency-weight 0
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../../scripts/train_paper.sh" wmt15_de_en de en 60000 1000 "$@"
