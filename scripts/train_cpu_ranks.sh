#!/usr/bin/env bash
# Data-parallel fairseq-train on the CPU cores of this machine, over gloo:
#
#   scripts/train_cpu_ranks.sh RANKS DATA --user-dir fairseq_milk --arch milk_rnmt_tiny ...   (the arguments of fairseq-train)
#
# Each rank is passed the values of torchrun that fairseq does not detect on a CPU. The default --ddp-backend of fairseq
# needs GPUs; legacy_ddp does not.
#
#   MASTER_PORT  the port (default: a free one)
set -euo pipefail

if [[ ${1:-} == --as-rank ]]; then
  shift
  exec fairseq-train "$@" --cpu --ddp-backend legacy_ddp --distributed-backend gloo \
    --distributed-no-spawn --distributed-init-method env:// \
    --distributed-world-size "$WORLD_SIZE" --distributed-rank "$RANK"
fi

if (($# < 2)) || ! [[ $1 =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: scripts/train_cpu_ranks.sh RANKS DATA [fairseq-train's options]" >&2
  exit 2
fi
ranks=$1
shift

venv=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin
[[ -x $venv/fairseq-train ]] && PATH=$venv:$PATH
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
port=${MASTER_PORT:-$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}

exec torchrun --nproc_per_node "$ranks" --master_addr 127.0.0.1 --master_port "$port" --no_python \
  bash "${BASH_SOURCE[0]}" --as-rank "$@"
