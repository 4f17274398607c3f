#!/bin/bash
# scripts/prove faults [--kills N] [--program PROGRAM]: a training run with checkpoints, a log and a page
# (tests/proofs/faults/train.cpp), in which each file call fails in turn, with EACCES, EMFILE, ENOSPC and EIO, and which
# is killed (SIGKILL) before a file call N times. Both for a new run and for one that resumes. Shows that each run ends
# well or with an Error of quantrain; that no checkpoint is lost; and that the run, started again, ends with the same
# bytes as an uninterrupted one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
source "$root/scripts/packages"
kills=300 program=
while [[ $# -gt 0 ]]; do
  case $1 in
    --kills) kills=$2 ;;
    --program) program=$2 ;;
    *) echo "unknown: $1"; exit 2 ;;
  esac
  shift 2
done
if [[ -z $program ]]; then
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  cmake -S "$root" --preset release -D QUANTRAIN_WARNINGS_AS_ERRORS=OFF -D QUANTRAIN_TESTS=ON -D QUANTRAIN_EXAMPLES=ON >/dev/null
  cmake --build "$root/build/release" --target file_faults
  program=$root/build/release/examples/file_faults
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -shared -fPIC -O1 -Wall -Wextra -o "$work/preload.so" "$here/preload.c" -ldl

# failing FOLDER NUMBER ERRNO: a run in which one file call fails. Sets `status`.
failing() {
  status=0
  { LD_PRELOAD=$work/preload.so FAULT_AT=$2 FAULT_ERRNO=$3 "$program" "$1" >"$work/log" || status=$?; } 2>/dev/null
}
# calls FOLDER: number of file calls of a run.
calls() { LD_PRELOAD=$work/preload.so FAULT_COUNT=3 "$program" "$1" 3>&1 >/dev/null; }
# latest FOLDER: step of the latest checkpoint; 0: none.
latest() {
  local name
  name=$(ls "$1/run" 2>/dev/null | grep -E '^step-[0-9]*\.safetensors$' | tail -1 || true)
  name=${name#step-}
  echo $((10#0${name%.safetensors}))
}

mkdir "$work/whole" "$work/part"
"$program" "$work/whole" >/dev/null
# A run that stops after six of nine steps: killed when it saves the seventh.
at=0
while [[ $(latest "$work/part") -lt 6 ]]; do
  rm -rf "$work/part"
  mkdir "$work/part"
  at=$((at + 5))
  { LD_PRELOAD=$work/preload.so FAULT_AT=$at FAULT_ERRNO=kill "$program" "$work/part" >/dev/null || true; } 2>/dev/null
done
mkdir "$work/new"
wrong=0 faults=0 refused=0 killed=0
# check FROM NUMBER ERRNO: makes one call fail in a copy of FROM, then runs again.
check() {
  local folder=$work/run before reached first
  rm -rf "$folder"
  cp -r "$1" "$folder"
  before=$(latest "$folder")
  failing "$folder" "$2" "$3"
  case $status in
    0) ;;
    3) refused=$((refused + 1)) ;;
    137) killed=$((killed + 1)) ;;
    *) echo "call $2, $3: status $status: $(tail -1 "$work/log")"; wrong=$((wrong + 1)) ;;
  esac
  faults=$((faults + 1))
  reached=$(grep -E '^step [0-9]+$' "$work/log" | tail -1 | cut -d' ' -f2 || true)
  # The step that was being saved may be missing, nothing else.
  if [[ $(latest "$folder") -lt $before || $(latest "$folder") -lt $((${reached:-0} - 1)) ]]; then
    echo "call $2, $3: a checkpoint is lost: latest $(latest "$folder"), before $before, reached ${reached:-none}"
    wrong=$((wrong + 1))
  fi
  if ls "$folder/run" 2>/dev/null | grep -q skipped; then echo "call $2, $3: a good checkpoint was skipped"; wrong=$((wrong + 1)); fi
  first=$(latest "$folder")
  if ! "$program" "$folder" >"$work/log" 2>&1; then
    echo "call $2, $3: the run cannot be resumed: $(tail -1 "$work/log")"
    wrong=$((wrong + 1))
  elif ! cmp -s "$work/whole/model" "$folder/model"; then
    echo "call $2, $3: another model"
    wrong=$((wrong + 1))
  elif [[ $(wc -l <"$folder/log") -ne 3 ]]; then
    echo "call $2, $3: the log has $(wc -l <"$folder/log") lines, expected 3"
    wrong=$((wrong + 1))
  fi
  reached=$(grep -E '^step [0-9]+$' "$work/log" | head -1 | cut -d' ' -f2 || true)
  if [[ -n $reached && $reached -ne $((first + 1)) ]]; then
    echo "call $2, $3: resumed at step $reached after checkpoint $first"
    wrong=$((wrong + 1))
  fi
}
# EACCES 13, EMFILE 24, ENOSPC 28, EIO 5
for from in new part; do
  rm -rf "$work/run"
  cp -r "$work/$from" "$work/run"
  count=$(calls "$work/run")
  for number in 13 24 28 5; do
    for ((at = 0; at < count; ++at)); do check "$work/$from" "$at" "$number"; done
  done
  echo "$from run: $count file calls, each failed with 4 errors"
done
echo "$faults faults: $refused gave an Error, $wrong wrong"
count=$(calls "$(rm -rf "$work/run" && cp -r "$work/new" "$work/run" && echo "$work/run")")
for ((i = 0; killed < kills; ++i)); do
  from=$( ((i % 3)) && echo new || echo part)
  check "$work/$from" $((i * 7 % count)) kill
done
echo "killed $killed times; $wrong wrong"
[[ $wrong -eq 0 ]]
