#!/bin/bash
# scripts/prove resume [--runs N] [--program NAME] [--damaged N] [--data FOLDER]: kills (SIGKILL) training runs at
# random moments and resumes them. Shows that they end with the same bytes as an uninterrupted run, in the model and in
# the tensors of the last checkpoint: in float, with quantization and with frozen ranges, on 1 to 4 threads. Also shows
# that a run with a damaged checkpoint refuses the checkpoint, or ends with the same model.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"
source "$root/tests/proofs/runs.sh"
runs=100 program=mnist_bncnn damaged=100 data=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --runs) runs=$2 ;;
    --program) program=$2 ;;
    --damaged) damaged=$2 ;;
    --data) data=(--data "$2") ;;
    *) echo "unknown: $1"; exit 2 ;;
  esac
  shift 2
done
need_packages "${build_packages[@]}" "${demo_packages[@]}"
cmake -S "$root" --preset release -D QUANTRAIN_EXAMPLES=ON >/dev/null
cmake --build "$root/build/release" --target "$program"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# train FOLDER THREADS: two epochs in float, and two with quantization, the last of them frozen.
train() {
  exec "$root/build/release/examples/$program" "${data[@]}" --limit 3000 --epochs 2 --qat-epochs 2 --frozen-epochs 1 --shift 2 \
       --timing-calls 1 --seed 5 --threads "$2" --checkpoint "$1/checkpoints" --checkpoint-every 7 --resume --save "$1/model"
}
mkdir "$work/whole"
begin=$(date +%s%N)
(train "$work/whole" 2) >"$work/log" 2>&1 || { tail -5 "$work/log"; exit 1; }
took=$((($(date +%s%N) - begin) / 1000000))
echo "$program: a whole run takes $took ms"

equal=0 kills=0
RANDOM=1
for ((run = 1; run <= runs; ++run)); do
  folder=$work/run
  rm -rf "$folder"
  mkdir "$folder"
  status=137
  while [[ $status -eq 137 ]]; do
    (train "$folder" $((1 + RANDOM % 4))) >"$work/log" 2>&1 &
    # Pauses of up to two thirds of the whole time, so that most runs are killed more than once.
    pause=$((RANDOM * took * 2 / 3 / 32768))
    sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
    if kill -KILL $! 2>/dev/null; then kills=$((kills + 1)); fi
    status=0
    wait $! 2>/dev/null || status=$?
  done
  if [[ $status -ne 0 ]]; then tail -1 "$work/log"; fi
  if equal_ends "$work/whole" "$folder"; then equal=$((equal + 1)); else echo "run $run differs"; fi
done
echo "$equal of $runs runs equal, killed $kills times"

# Each time, the last checkpoint of one stage of a finished run is damaged: one byte is replaced, or, every tenth time,
# the file is cut off.
refused=0 unchanged=0 wrong=0
rm -rf "$work/run"
mkdir "$work/run"
(train "$work/run" 2) >"$work/log" 2>&1
for ((i = 1; i <= damaged; ++i)); do
  folder=$work/damaged
  rm -rf "$folder"
  cp -r "$work/run" "$folder"
  rm "$folder/model"
  stage=$( ((i % 2)) && echo float || echo QAT)
  file=$folder/checkpoints/$stage/$(ls "$folder/checkpoints/$stage" | tail -1)
  size=$(stat -c %s "$file")
  at=$(((RANDOM * 32768 + RANDOM) % size))
  if ((i % 10 == 0)); then
    truncate -s "$at" "$file"
  else
    printf "\\x$(printf %x $((RANDOM % 256)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
  fi
  if (train "$folder" 2) >"$work/log" 2>&1; then
    if cmp -s "$work/whole/model" "$folder/model"; then unchanged=$((unchanged + 1)); else wrong=$((wrong + 1)); fi
  elif grep -q "$(basename "$file")" "$work/log"; then
    refused=$((refused + 1))
  else
    wrong=$((wrong + 1))
    tail -1 "$work/log"
  fi
done
echo "$damaged damaged checkpoints: $refused refused with the file's name, $unchanged with the same model, $wrong wrong"
[[ $equal -eq $runs && $wrong -eq 0 ]]
