#!/usr/bin/env bash
# Data-parallel fairseq-train on GPUs with torchrun, run once on every node:
#
#   NNODES=4 NODE_RANK=0 MASTER_ADDR=first-node scripts/train_nodes.sh [--dry-run] DATA [fairseq-train's options]
#
#   NNODES       nodes (1)                      NODE_RANK    this one, from 0 (0)
#   GPUS         GPUs on each node (8)          MASTER_ADDR  the first node (127.0.0.1)
#   MASTER_PORT  a free port there (29500)
#
# --dry-run prints the command. fairseq must be told the world size itself: see examples/README.md, 'data parallel'.
set -euo pipefail
dry_run=false
[[ ${1:-} == --dry-run ]] && dry_run=true && shift
nnodes=${NNODES:-1} gpus=${GPUS:-8}
venv=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin
[[ -x $venv/fairseq-train ]] && PATH=$venv:$PATH

command=(torchrun --nnodes "$nnodes" --nproc_per_node "$gpus" --node_rank "${NODE_RANK:-0}"
  --master_addr "${MASTER_ADDR:-127.0.0.1}" --master_port "${MASTER_PORT:-29500}" --no_python
  fairseq-train "$@" --distributed-world-size "$((nnodes * gpus))" --distributed-no-spawn)

if [[ $dry_run == true ]]; then
  printf '%q ' "${command[@]}"
  printf '\n'
else
  exec "${command[@]}"
fi
