#!/usr/bin/env bash
# The whole check on a GPU in one go, in under 8 minutes:
#
#   python -m benchmarks.gpu_bundle bundle.tar    on any machine with tvmgraph and nvcc
#   benchmarks/gpu.sh bundle.tar out              on the machine with the GPU
#
# It runs the operator table, the networks and the timed rows of the bundle, compares with PyTorch
# and JAX where they are installed, profiles one row with Nsight Compute where that is, and writes
# out/results.{json,md}. The exit status says whether everything was right.
set -euo pipefail

bundle=${1:?usage: gpu.sh BUNDLE OUT}
out=${2:?usage: gpu.sh BUNDLE OUT}
shift 2
mkdir -p "$out"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xf "$bundle" -C "$folder"
command -v nvidia-smi >/dev/null && nvidia-smi | tee "$out/nvidia-smi.txt"

status=0
python3 "$folder/gpu-check/gpu_run.py" "$out" "$@" || status=$?

if command -v ncu >/dev/null && [ "$status" -le 1 ]; then
  timeout 60 ncu --set base --clock-control none --launch-count 4 \
    python3 "$folder/gpu-check/gpu_run.py" "$out" --item softmax >"$out/profile.txt" 2>&1 ||
    echo "ncu gave no profile; see $out/profile.txt"
fi
exit "$status"
