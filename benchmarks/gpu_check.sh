#!/usr/bin/env bash
# For the day a GPU is lent: torch, inductor, jax and onnxruntime on CUDA, then one Nsight Compute run. Under 15 minutes.
# The machine's own python brings torch, jax and onnx; wheels that it lacks may lie in ./wheels.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
OUT=${OUT:-build/gpu-check}
SITE=build/gpu-site
mkdir -p "$OUT" "$SITE"
if [ -d wheels ]; then
  "$PYTHON" -m pip install --quiet --no-index --find-links wheels --no-deps --target "$SITE" wheels/*.whl
fi
export PYTHONPATH="$PWD:$PWD/$SITE${PYTHONPATH:+:$PYTHONPATH}"
"$PYTHON" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else "gpu-check: no CUDA device present")'
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv | tee "$OUT/gpu.csv"
"$PYTHON" -m graphnet.evaluator --compiler=torch,inductor,jax,onnxruntime --backend=cuda --budget=2 --output="$OUT/results" \
  --graph=benchmark/vision/resnet50.json --graph=benchmark/transformer/bert_base.json --graph=benchmark/matmul
"$PYTHON" -m graphnet roofline "$OUT/results" --backend cuda -o "$OUT/roofline.html" | tee "$OUT/roofline.txt"
if command -v ncu >/dev/null; then
  "$PYTHON" -m graphnet counters benchmark/vision/resnet50.json --compiler torch --backend cuda | tee "$OUT/counters.txt"
else
  echo "gpu-check: ncu is not installed" | tee "$OUT/counters.txt"
fi
