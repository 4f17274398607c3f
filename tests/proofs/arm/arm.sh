#!/bin/bash
# scripts/prove arm [--only TEXT]: prints the instructions per multiply-add of common layers on emulated 64-bit Arm: of
# integer layers with widening NEON, with SDOT and with I8MM, and of float layers with NEON. First checks that the
# integers are the reference's. Fails if a layer takes more instructions than goals.tsv allows, or if I8MM takes more
# than SDOT in one of these layers. For SDOT, a goal is half of what NEON took before SDOT was used; for floats it is a
# few per cent more than when the goal was written. Instruction counts are not times.
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
need_arm_libraries zlib1g-dev
work=$root/build/arm
echo "Building."
build_layers "$work" ON
build_plugin "$work"
run_layers max "$work" check

# instructions PROGRAM ARGUMENT...: prints the instructions that the program executes
instructions() {
  qemu-aarch64 -cpu max -plugin "$work/count.so" -L /usr/aarch64-linux-gnu "$work/$1" "${@:2}" 2>&1 |
    awk '$1 == "instructions" { print $2 }'
}
# count MULTIPLY_ADDS PROGRAM ARGUMENT...: prints a layer's instructions per multiply-add, without the rest of the
# program. The program takes a last argument: how many times it computes the layer.
count() {
  local once twice
  once=$(instructions "${@:2}" 4)
  twice=$(instructions "${@:2}" 8)
  if ! [[ $once =~ ^[0-9]+$ && $twice =~ ^[0-9]+$ && $twice -gt $once ]]; then
    echo "prove arm: no instructions were counted for ${*:2}: \"$once\", \"$twice\"" >&2
    return 1
  fi
  awk -v n=$((twice - once)) -v m="$1" 'BEGIN { printf "%.3f", n / 4 / m }'
}
# goal NAME: prints the goal of a layer, or nothing
goal() { awk -F'\t' -v n="$1" '$1 == n { print $2 }' "$root/tests/proofs/arm/goals.tsv"; }
more() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }
failed=0 counted=0
# row DESCRIPTION FAILS VALUE...: prints a row of a table. FAILS marks it as failed if not empty.
row() {
  counted=$((counted + 1))
  if [[ -n $2 ]]; then failed=$((failed + 1)); fi
  printf '%-44s %10s %10s %10s%s\n' "$1" "${@:3}" "${2:+ !}"
}

layers=$(run_layers max "$work")
float_layers=$(qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu "$work/arm_float_layers")
echo "Instructions per multiply-add, emulated. They are not times."
printf '%-44s %10s %10s %10s\n' "integers, one image" NEON SDOT I8MM
while IFS=$'\t' read -r name products description; do
  if [[ $description != *"$only"* ]]; then continue; fi
  values=() fails=
  for isa in neon64 neon64dot neon64i8mm; do
    value=$(QUANTRAIN_ISA=$isa count "$products" arm_layers "$name")
    values+=("$value")
  done
  most=$(goal "$name")
  if [[ -n $most ]] && { more "${values[1]}" "$most" || more "${values[2]}" "${values[1]}"; }; then fails=yes; fi
  row "$description" "$fails" "${values[@]}"
done <<<"$layers"

printf '\n%-44s %10s %10s %11s\n' "floats, eight images" forward "data grad" "weight grad"
while IFS=$'\t' read -r name products description; do
  if [[ $description != *"$only"* ]]; then continue; fi
  values=() fails=
  for pass in forward data weights; do
    value=$(QUANTRAIN_ISA=neon64 count "$products" arm_float_layers "$name" $pass)
    most=$(goal "$name/$pass")
    if [[ -n $most ]] && more "$value" "$most"; then fails=yes; fi
    values+=("$value")
  done
  row "$description" "$fails" "${values[@]}"
done <<<"$float_layers"

if [[ $counted -eq 0 ]]; then echo "prove arm: no layer's description has \"$only\"" >&2; exit 2; fi
if [[ $failed -gt 0 ]]; then
  echo "!: more instructions than the goal, or I8MM takes more than SDOT, in $failed layers"
  exit 1
fi
