#!/bin/bash
# scripts/prove onnx_export: shows that exported ONNX gives the engine's integers in ONNX Runtime. Trains the examples'
# networks briefly and exports them, the networks of MLPerf Tiny, and random ones.
#   exact: every output of every image, with and without graph optimization; every step on 20 images
#   layers: each layer as QuantizeLinear and DequantizeLinear, fed the engine's codes: at most 1e-4 of the codes differ,
#     of sums 3.4e-4, because ONNX Runtime's multipliers have 22 bits there
#   qdq: outputs of whole networks, other classes, operators of the optimized graphs, times beside the engine's
# Installs npm's onnxruntime-node; takes onnxruntime-web, too, and Python's onnx, where they are.
# These are the defaults: --images 10000 --random 50 --tiny 4 --bits 8,4,2 --networks
# mnist_mlp,mnist_cnn,mnist_bncnn,mnist_resnet --data /usr/share/datasets/fashion-mnist
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"

data=/usr/share/datasets/fashion-mnist
networks=mnist_mlp,mnist_cnn,mnist_bncnn,mnist_resnet bits=8,4,2 images=10000 random=50 tiny=4
while [[ $# -gt 0 ]]; do
  case $1 in
    --data | --networks | --bits | --images | --random | --tiny)
      if [[ $# -lt 2 ]]; then echo "prove onnx_export: $1 needs a value" >&2; exit 2; fi
      declare "${1#--}=$2"
      shift 2
      ;;
    *) echo "prove onnx_export: no flag $1: use --data, --networks, --bits, --images, --random or --tiny" >&2; exit 2 ;;
  esac
done
need_packages "${build_packages[@]}" "${test_packages[@]}"
need_onnx_runtime
if [[ $data == /usr/share/datasets/fashion-mnist ]]; then need_packages "${demo_packages[@]}"; fi
IFS=, read -ra networks <<<"$networks"
IFS=, read -ra bits <<<"$bits"
build=${QUANTRAIN_BUILD:-$root/build/release}
if [[ -z ${QUANTRAIN_BUILD:-} ]]; then
  echo "Building."
  cmake -S "$root" --preset release -D QUANTRAIN_WARNINGS_AS_ERRORS=OFF -D QUANTRAIN_TESTS=ON -D QUANTRAIN_EXAMPLES=ON >/dev/null
  cmake --build "$build" --target "${networks[@]}" onnx_programs >"$build/prove.log" || { tail -n 50 "$build/prove.log" >&2; exit 2; }
fi
work=$build/onnx_export
rm -rf "$work" && mkdir -p "$work/models"
models=()
for network in "${networks[@]}"; do
  for b in "${bits[@]}"; do
    model=$work/models/${network}_$b.model
    "$build/examples/$network" --data "$data" --limit 2000 --epochs 1 --qat-epochs 1 --weight-bits "$b" --timing-calls 1 \
      --save "$model" >"$work/train.log"
    models+=("$model")
  done
done
"$build/examples/onnx_programs" "$work" --data "$data" --images "$images" --random "$random" --tiny "$tiny" "${models[@]}"

failed=0
run=$root/tests/quant/export/onnx_run.js
for what in exact layers qdq; do
  echo "$what, onnxruntime-node:"
  node "$run" "$work/$what/cases.json" onnxruntime-node || failed=1
done
if node -e "require('onnxruntime-web')" 2>/dev/null; then
  echo "exact, onnxruntime-web:"
  node "$run" "$work/exact/cases.json" onnxruntime-web || failed=1
fi
if python3 -c 'import onnx' 2>/dev/null; then
  python3 - "$work" <<'CHECK' || failed=1
import glob, onnx, sys
files = glob.glob(sys.argv[1] + '/**/*.onnx', recursive=True)
for file in files:
    onnx.checker.check_model(file, full_check=True)
print(f'{len(files)} files pass the ONNX checker')
CHECK
fi
exit $failed
