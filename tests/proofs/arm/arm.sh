#!/bin/bash
# scripts/prove arm [--only TEXT]: prints the instructions per multiply-add of common layers on emulated 64-bit Arm,
# with widening NEON, with SDOT and with I8MM. First checks that all of these give the reference's integers. Fails if
# SDOT takes more instructions than goals.tsv allows (half of what NEON took before SDOT was used), or if I8MM takes
# more than SDOT in one of these layers. Instruction counts are not times.
set -euo pipefail
shopt -s inherit_errexit
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"
source "$root/tests/proofs/arm/build.sh"
only=
while [[ $# -gt 0 ]]; do
  case $1 in
    --only) only=$2; shift 2 ;;
    *) echo "prove arm: no flag $1: use --only" >&2; exit 2 ;;
  esac
done
need_packages "${build_packages[@]}" "${arm_packages[@]}"
work=$root/build/arm
echo "Building."
build_layers "$work"
build_plugin "$work"
run_layers max "$work" check

# instructions ISA LAYER TIMES: prints the instructions of a program that computes the layer TIMES times
instructions() {
  QUANTRAIN_ISA=$1 qemu-aarch64 -cpu max -plugin "$work/count.so" -L /usr/aarch64-linux-gnu "$work/arm_layers" "$2" "$3" 2>&1 |
    awk '$1 == "instructions" { print $2 }'
}
# count ISA LAYER MULTIPLY_ADDS: prints the layer's instructions per multiply-add, without the rest of the program
count() {
  local once twice
  once=$(instructions "$1" "$2" 4)
  twice=$(instructions "$1" "$2" 8)
  if ! [[ $once =~ ^[0-9]+$ && $twice =~ ^[0-9]+$ && $twice -gt $once ]]; then
    echo "prove arm: no instructions were counted for $2 with $1: \"$once\", \"$twice\"" >&2
    return 1
  fi
  awk -v n=$((twice - once)) -v m="$3" 'BEGIN { printf "%.3f", n / 4 / m }'
}
echo "Instructions per multiply-add, emulated. They are not times."
printf '%-44s %10s %10s %10s\n' layer NEON SDOT I8MM
failed=0 counted=0
while IFS=$'\t' read -r name products description; do
  if [[ $description != *"$only"* ]]; then continue; fi
  counted=$((counted + 1))
  row=()
  for isa in neon64 neon64dot neon64i8mm; do
    value=$(count $isa "$name" "$products")
    row+=("$value")
  done
  mark= goal=$(awk -F'\t' -v n="$name" '$1 == n { print $2 }' "$root/tests/proofs/arm/goals.tsv")
  if [[ -n $goal ]] && awk -v v="${row[1]}" -v g="$goal" -v m="${row[2]}" 'BEGIN { exit !(v > g || m > v) }'; then
    mark=" !"
    failed=$((failed + 1))
  fi
  printf '%-44s %10s %10s %10s%s\n' "$description" "${row[@]}" "$mark"
done < <(run_layers max "$work")
if [[ $counted -eq 0 ]]; then echo "prove arm: no layer's description has \"$only\"" >&2; exit 2; fi
if [[ $failed -gt 0 ]]; then
  echo "!: SDOT takes more than the goal, or I8MM more than SDOT, in $failed layers"
  exit 1
fi
