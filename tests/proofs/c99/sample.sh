#!/bin/bash
# sample.sh C99_PROGRAMS WORK TARGET...: shows that a few random networks and layers give the engine's integers on these
# targets.
# Exits with 77, CTest's status for a skipped test, if a compiler or an emulator is missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/targets.sh"
programs=$1 work=$2
for target in "${@:3}"; do
  tool=$(missing "$target")
  if [[ -n $tool ]]; then echo "skipped: no $tool"; exit 77; fi
done
rm -rf "$work" && mkdir -p "$work"
c99_results=$work/results
# random_21 has many steps, random_22 has windows that are larger than the image.
"$programs" random "$work" 5 --first 18 >"$work/random.tsv"
for layer in depthwise linear; do "$programs" layers "$work" --bits 4 --only $layer >>"$work/random.tsv"; done
"$programs" layers "$work" --bits 1 --only conv_10x4 >>"$work/random.tsv"

spoil "$work" random_18 "$work/wrong"
check_failure "$3" test_on "$3" "$work/wrong" random_18
if is_board "$3"; then check_symbols "$work"; fi
while IFS=$'\t' read -r name _; do
  for target in "${@:3}"; do report "$name" "$target" test_on "$target" "$work" "$name"; done
done <"$work/random.tsv"
conclude
