#!/usr/bin/env bash
# The whole check on a GPU in one go, in under 8 minutes:
#
#   python -m benchmarks.gpu_bundle bundle.tar    on any machine with tvmgraph and nvcc
#   benchmarks/gpu.sh bundle.tar out              on the machine with the GPU
#
# It runs the operator table, the networks and the timed rows of the bundle, compares with PyTorch
# and JAX where they are installed, lists the kernels of every row with their times (PyTorch's
# profiler; one row in depth with Nsight Compute where that is), and writes out/results.{json,md}
# after every item. The exit status is 0 when everything was right, 1 when something was not.
set -euo pipefail

bundle=${1:?usage: gpu.sh BUNDLE OUT}
out=${2:?usage: gpu.sh BUNDLE OUT}
shift 2
mkdir -p "$out"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xf "$bundle" -C "$folder"
if command -v nvidia-smi >/dev/null; then
  timeout 20 nvidia-smi 2>&1 | tee "$out/nvidia-smi.txt" || echo "nvidia-smi failed"
fi

status=0
python3 "$folder/gpu-check/gpu_run.py" "$out" "$@" 2>&1 | tee "$out/log.txt" || status=$?

if command -v ncu >/dev/null && [ "$status" -le 1 ]; then
  timeout 40 ncu --set base --clock-control none --launch-count 4 \
    python3 "$folder/gpu-check/gpu_item.py" own softmax >"$out/ncu.txt" 2>&1 ||
    echo "ncu gave no profile; see $out/ncu.txt"
fi
exit "$status"
