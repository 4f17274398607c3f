#!/bin/bash
# scripts/prove c99 --layers [--boards BOARD,...] [--bits B,...] [--only TEXT] [-- FLAG...]: prints the instructions per
# multiply-add of each layer on emulated boards, next to the goals of goals.tsv; "!" marks layers above their goal.
# Activations have 8 bits, and in the lines "1, 1" 1 bit.
# FLAGs go to the compiler.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
boards=mps2-an385,mps2-an386,mps2-an500,mps3-an547 bits=8,4,2,1 only=
while [[ $# -gt 0 ]]; do
  case $1 in
    --boards) boards=$2; shift 2 ;;
    --bits) bits=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --) shift; break ;;
    *) echo "prove c99 --layers: no flag $1: use --boards, --bits, --only, or -- before compiler flags" >&2; exit 2 ;;
  esac
done
work=$root/build/c99/layers
rm -rf "$work" && mkdir -p "$work"
"$root/build/release/examples/c99_programs" layers "$work" --bits "$bits" --only "$only" >"$work/layers.tsv"
if [[ ! -s $work/layers.tsv ]]; then echo "prove c99 --layers: no layer's name has \"$only\"" >&2; exit 2; fi

# count NAME BOARD FLAG...: writes the instructions per multiply-add, or FAILED, to NAME.BOARD.count.
count() {
  local log=$work/$1.$2.log
  if ! "$root/examples/cortex_m/run" "$2" "$work" "$1" "${@:3}" >"$log" 2>&1; then
    echo "FAILED" >"$work/$1.$2.count"
  else
    awk '$1 == "0:" { print $NF }' "$log" >"$work/$1.$2.count"
  fi
}
export -f count
export work root
IFS=, read -ra list <<<"$boards"
while IFS=$'\t' read -r name _; do
  for board in "${list[@]}"; do printf '%s\0' "$name $board"; done
done <"$work/layers.tsv" | xargs -0 -P "$(nproc)" -I{} bash -c 'read -r name board <<<"{}"; count $name $board "$@"' _ "$@"

echo "Instructions per multiply-add, with the goal in parentheses:"
printf '%-44s %4s' layer bits
for board in "${list[@]}"; do
  case $board in
    mps2-an385) title=M3 ;;
    mps2-an386) title=M4 ;;
    mps2-an500) title=M7 ;;
    mps3-an547) title=M55 ;;
    microbit) title=M0 ;;
    *) title=$board ;;
  esac
  printf '%16s' $title
done
echo
failed=0
while IFS=$'\t' read -r name description b; do
  printf '%-44s %4s' "$description" "$b"
  for board in "${list[@]}"; do
    value=$(<"$work/$name.$board.count")
    if [[ $value == FAILED ]]; then failed=$((failed + 1)); fi
    goal=$(awk -F'\t' -v n="$name" -v b="$board" '$1 == n && $2 == b { print $3 }' "$root/tests/proofs/c99/goals.tsv")
    if [[ -n $goal && $value != FAILED ]]; then
      mark=$(awk -v v="$value" -v g="$goal" 'BEGIN { print (v + 0 > g + 0 ? "!" : " ") }')
      value="$value ($goal)$mark"
    else
      value="$value "
    fi
    printf '%16s' "$value"
  done
  echo
done <"$work/layers.tsv"
if [[ $failed -gt 0 ]]; then
  echo "$failed did not run, or gave other integers than the engine; their output is in build/c99/layers/*.log"
  exit 1
fi
