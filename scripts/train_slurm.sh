#!/usr/bin/env bash
# Runs a launcher of examples/ on every node of a SLURM job; examples/wmt15_de_en/train.slurm and wmt14_en_fr/train.slurm call it:
#
#   scripts/train_slurm.sh TRAIN_SH [--dry-run] [fairseq-train's options]
#
# --dry-run, which needs no SLURM, prints the command of each node.
set -euo pipefail
train=$1
shift
export NNODES=${SLURM_NNODES:-4} GPUS=${SLURM_GPUS_ON_NODE:-8} MASTER_PORT=${MASTER_PORT:-29500}

if [[ ${1:-} == --dry-run ]]; then
  export MASTER_ADDR=first-node
  for ((NODE_RANK = 0; NODE_RANK < NNODES; NODE_RANK++)); do
    NODE_RANK=$NODE_RANK bash "$train" "$@"
  done
  exit
fi

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR
srun --kill-on-bad-exit --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" bash -c 'NODE_RANK=$SLURM_NODEID exec bash "$@"' train "$train" "$@"
