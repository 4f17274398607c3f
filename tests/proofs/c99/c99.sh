#!/bin/bash
# scripts/prove c99: shows that exported C gives the engine's integers. Trains the examples' networks briefly, exports
# them, and compares the codes of every step, the output of every image, and classes. Flags set the numbers of images
# and random networks; these are the defaults:
#   on this machine, compiled by GCC and Clang with -O0 and -O3, without vectors, and  --images 10000
#   on x86-64 also with AVX2 and for this very CPU
#   on aarch64 and riscv64, emulated                                                  --cross 1000
#   on Cortex-M0, M3, M4, M7 and M55, emulated; their objects call no floating point  --board 100
#   and random networks on this machine                                               --random 100
# --networks mnist_mlp,mnist_cnn,mnist_bncnn,mnist_resnet and --bits 8,4,2 select what runs. Missing tools are skipped.
#   scripts/prove c99 --layers    instructions per multiply-add of layers: see layers.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"
source "$root/tests/proofs/c99/targets.sh"

# build TARGET...: silent unless it fails
build() {
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  echo "Building."
  cmake -S "$root" --preset release -D QUANTRAIN_WARNINGS_AS_ERRORS=OFF -D QUANTRAIN_TESTS=ON -D QUANTRAIN_EXAMPLES=ON >/dev/null
  cmake --build "$root/build/release" --target "$@" >"$root/build/release/prove.log" ||
    { tail -n 50 "$root/build/release/prove.log" >&2; exit 2; }
}
if [[ ${1:-} == --layers ]]; then
  build c99_programs
  exec "$root/tests/proofs/c99/layers.sh" "${@:2}"
fi

data=/usr/share/datasets/fashion-mnist
networks=mnist_mlp,mnist_cnn,mnist_bncnn,mnist_resnet bits=8,4,2 images=10000 cross=1000 board=100 random=100
while [[ $# -gt 0 ]]; do
  case $1 in
    --data | --networks | --bits | --images | --cross | --board | --random)
      if [[ $# -lt 2 ]]; then echo "prove c99: $1 needs a value" >&2; exit 2; fi
      declare "${1#--}=$2"
      shift 2
      ;;
    *) echo "prove c99: no flag $1: use --layers, --data, --networks, --bits, --images, --cross, --board or --random" >&2; exit 2 ;;
  esac
done
if [[ $data == /usr/share/datasets/fashion-mnist ]]; then need_packages "${demo_packages[@]}"; fi
IFS=, read -ra networks <<<"$networks"
IFS=, read -ra bits <<<"$bits"
build "${networks[@]}" quantrain_program c99_programs
programs=$root/build/release/examples
work=$root/build/c99/proof
rm -rf "$work" && mkdir -p "$work"
c99_results=$work/results
touch "$c99_results"

natives=(gcc-O3 gcc-O0 clang-O3 clang-O0 plain)
if grep -qw avx2 /proc/cpuinfo; then natives+=({gcc,clang}-O3-m{avx2,arch=native}); fi
boards=(mps2-an385/cortex-m0 mps2-an385 mps2-an386 mps2-an500 mps3-an547)

# images TARGET FOLDER COUNT: runs the folder's network on COUNT images
images() { run_program "$1" "$root/tests/proofs/c99/images.c" "$2" images "$2/expected" "$3"; }
# make_network NETWORK BITS FOLDER: trains and exports the network, and writes what the engine computes
make_network() {
  "$programs/$1" --data "$data" --limit 2000 --epochs 1 --qat-epochs 1 --weight-bits "$2" --timing-calls 1 --save "$3/model" &&
    "$root/build/release/tools/quantrain" export "$3/model" --to c99 --output "$3" --name network --test "$board" --data "$data" &&
    "$programs/c99_programs" expected "$3/model" "$data" "$images" "$3/expected"
}
# check_network NETWORK BITS: compares the network's results on all targets
check_network() {
  local label="$1 W$2" folder=$work/$1.$2 target
  mkdir "$folder"
  if ! make_network "$1" "$2" "$folder" >"$folder/log" 2>&1; then
    printf '%-24s NO NETWORK\n%s\n' "$label" "$(tail -n 3 "$folder/log")"
    echo "failed $label" >>"$c99_results"
    return
  fi
  for target in "${natives[@]}"; do report "$label" "$target" images "$target" "$folder" "$images"; done
  for target in aarch64 riscv64; do report "$label" "$target" images "$target" "$folder" "$cross"; done
  for target in "${boards[@]}"; do report "$label" "$target" test_on "$target" "$folder" network; done
  if [[ $1 == mnist_bncnn ]]; then report "$label" microbit test_on microbit "$folder" network; fi
}
# check_random NAME I: compares a random network; the compilers take turns
check_random() {
  local target=${natives[$(($2 % ${#natives[@]}))]}
  report "$1" "$target" test_on "$target" "$work/random" "$1"
}
# in_parallel FUNCTION: calls the function with each line of standard input
in_parallel() {
  local arguments
  while read -ra arguments; do
    while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do wait -n || true; done
    "$1" "${arguments[@]}" &
  done
  wait
}

echo "First: a wrong network must be detected."
"$programs/c99_programs" random "$work/random" "$random" >"$work/random.tsv"
spoil "$work/random" random_0 "$work/wrong"
for target in gcc-O3 aarch64 riscv64 mps2-an385; do
  if [[ -z $(missing $target) ]]; then check_failure "$target" test_on $target "$work/wrong" random_0; fi
done
if [[ -z $(missing mps2-an385) ]]; then check_symbols "$work"; fi

echo "Now the integers: all steps and the output of each image or sample, and classes."
for network in "${networks[@]}"; do
  for b in "${bits[@]}"; do echo "$network" "$b"; done
done | in_parallel check_network
awk '{ print $1, NR - 1 }' "$work/random.tsv" | in_parallel check_random >"$work/random.txt"
grep -v ' equal$' "$work/random.txt" || true
echo "Random networks: $(grep -c ' equal$' "$work/random.txt") of $random equal"
conclude
