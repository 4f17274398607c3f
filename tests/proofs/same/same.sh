#!/bin/bash
# scripts/prove same COMMIT: shows that this tree and COMMIT train and convert to the same integers. Builds the example
# programs of both, trains each network at 8, 4 and 2 bits with both, and compares the saved models and the logits of
# all test images.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"

need_packages git "${build_packages[@]}" "${demo_packages[@]}"
if [[ $# -ne 1 ]]; then echo "usage: scripts/prove same COMMIT" >&2; exit 2; fi
if ! commit=$(git -C "$root" rev-parse --quiet --verify "$1^{commit}"); then
  echo "prove same: this repository has no commit $1. If it is a shallow clone, fetch its history:" >&2
  echo "  git fetch --unshallow" >&2
  exit 2
fi

work=$root/build/same
tree=$work/tree
data=/usr/share/datasets/fashion-mnist
networks=(mnist_mlp mnist_cnn mnist_bncnn mnist_resnet)

remove_tree() {
  if [[ -e $tree ]]; then git -C "$root" worktree remove --force "$tree" || rm -rf "$tree"; fi
  git -C "$root" worktree prune
}
mkdir -p "$work"
remove_tree
trap remove_tree EXIT
trap 'exit 130' INT TERM
git -C "$root" worktree add --quiet --detach "$tree" "$commit"

# build SIDE TREE TARGET...: builds a tree's programs in $work/SIDE.
build() {
  cmake -S "$root/tests/proofs/same" -B "$work/$1" -G Ninja -D CMAKE_BUILD_TYPE=Release -D TREE="$2" >/dev/null || exit 2
  cmake --build "$work/$1" --target "${@:3}" >"$work/$1.log" || { tail -n 50 "$work/$1.log" >&2; exit 2; }
}
# train SIDE NETWORK BITS SEED NAME: writes $work/SIDE/NAME.safetensors and its logits.
train() {
  local name=$work/$1/$5
  rm -f "$name".*
  "$work/$1/tree/examples/$2" --data "$data" --limit 2000 --epochs 1 --qat-epochs 1 --seed "$4" --weight-bits "$3" \
    --activation-bits "$3" --timing-calls 1 --save "$name.safetensors" >"$name.txt"
  "$work/$1/logits" "$name.safetensors" "$data" "$name.logits"
}
# compare NAME BEFORE AFTER: compares files, whose names are given without their endings
compare() { "$work/after/same" "$1" "$2".safetensors "$2".logits "$3".safetensors "$3".logits; }

echo "Building ${commit:0:12}."
build before "$tree" programs
echo "Building this tree."
build after "$root" programs same

# A comparison that cannot fail proves nothing.
train before mnist_mlp 8 3 seed3
train after mnist_mlp 8 4 seed4
status=0
compare "another seed" "$work/before/seed3" "$work/after/seed4" >"$work/check.txt" 2>&1 || status=$?
if [[ $status -ne 1 ]]; then
  cat "$work/check.txt" >&2
  echo "prove same: the comparison does not tell models of two seeds apart" >&2
  exit 2
fi
echo "Models of two seeds differ, as they should. Now with the same seed:"

same=0 cases=0
for network in "${networks[@]}"; do
  for bits in 8 4 2; do
    train before "$network" $bits 3 "$network.$bits"
    train after "$network" $bits 3 "$network.$bits"
    cases=$((cases + 1))
    if compare "$network W${bits}A$bits" "$work/before/$network.$bits" "$work/after/$network.$bits"; then
      same=$((same + 1))
    fi
  done
done
echo "$same of $cases the same"
[[ $same -eq $cases ]]
