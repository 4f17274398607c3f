#!/bin/bash
# sample.sh FOLDER: shows that every instruction set of emulated 64-bit Arm gives the integers of the reference. Builds
# in FOLDER. Exits with 77, CTest's status for a skipped test, if the compiler or the emulator is missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  if ! command -v $tool >/dev/null; then echo "skipped: no $tool"; exit 77; fi
done
build_layers "$1" OFF
failed=0
# check CPU EXPECTED: checks that the CPU has the instruction sets in EXPECTED, and that their integers are equal
check() {
  local output
  if ! output=$(run_layers "$1" "$arm_work" check 2>&1) || [[ $output != "$2" ]]; then
    failed=1
    printf 'FAILED %s: expected\n%s\nbut got\n%s\n' "$1" "$2" "$output"
  else
    echo "$1: $output"
  fi
}
arm_work=$1
check cortex-a53 "equal: reference neon64"
check neoverse-n1 "equal: reference neon64 neon64dot"
check max "equal: reference neon64 neon64dot neon64i8mm"
exit $failed
