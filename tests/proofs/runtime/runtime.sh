#!/bin/bash
# scripts/prove runtime: builds examples/deploy.cpp in an empty Debian 12 from the installed runtime, with only g++. The
# program computes the logits of the full build, contains nothing of training, and is small. Needs root, for debootstrap
# and chroot.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"
source "$root/tests/proofs/debian.sh"

largest=737280  # bytes of the stripped program without AMX (12 kB), of which AVX-VNNI takes 56 kB and fewer bits 45 kB
data=/usr/share/datasets/fashion-mnist
full=$root/build/release     # the build that trains, with threads
slim=$root/build/runtime     # the runtime alone, without threads
prefix=$slim/prefix
debian=$root/build/debian-12 # kept for the next time
held=yes
fail() { echo "NOT SO: $*"; held=no; }

need_root runtime
need_packages "${build_packages[@]}" "${demo_packages[@]}" binutils

# build FOLDER ARGUMENT...: cmake --build, silent unless it fails
build() { cmake --build "$@" >"$1/prove.log" || { tail -n 50 "$1/prove.log" >&2; exit 2; }; }
echo "Building the runtime alone, and the programs that train."
cmake -S "$root" -B "$slim" -G Ninja -D CMAKE_BUILD_TYPE=Release -D QUANTRAIN_TRAINING=OFF -D QUANTRAIN_THREADS=OFF \
  -D QUANTRAIN_AMX=OFF \
  -D CMAKE_INSTALL_LIBDIR=lib >/dev/null || exit 2
build "$slim"
rm -rf "$prefix"
cmake --install "$slim" --prefix "$prefix" >/dev/null
cmake -S "$root" --preset release -D QUANTRAIN_TRAINING=ON -D QUANTRAIN_THREADS=ON -D QUANTRAIN_EXAMPLES=ON \
  -D QUANTRAIN_TESTS=OFF >/dev/null || exit 2
build "$full" --target mnist_cnn deploy

# A model, and some test images as raw bytes; an IDX file has 16 bytes before the images.
inputs=$slim/inputs
rm -rf "$inputs" && mkdir "$inputs"
"$full/examples/mnist_cnn" --data "$data" --limit 2000 --epochs 1 --qat-epochs 1 --timing-calls 1 \
  --save "$inputs/model.safetensors" >/dev/null
zcat -f "$data"/t10k-images-idx3-ubyte* >"$inputs/images"
for i in 0 1 2 3 4 5 6 7 100 9999; do
  tail -c +$((17 + 784 * i)) "$inputs/images" | head -c 784 >"$inputs/$i.image" || true
done
rm "$inputs/images"
for image in "$inputs"/*.image; do "$full/examples/deploy" "$inputs/model.safetensors" "$image"; done >"$inputs/expected"

if [[ ! -e $debian/made ]]; then
  rm -rf "$debian"
  empty_debian bookworm "$debian"
  { in_debian "$debian" dpkg-query -W -f '${Package}\n' | sort >"$slim/minimal"
    in_debian "$debian" apt-get install -y -q --no-install-recommends g++ &&
      in_debian "$debian" dpkg-query -W -f '${Package}\n' | sort | comm -13 "$slim/minimal" - >"$debian/made"
  } >"$slim/apt.log" 2>&1 || { tail "$slim/apt.log" >&2; exit 2; }
fi
echo "In Debian $(cat "$debian/etc/debian_version") by debootstrap --variant=minbase, with g++ and its $(($(wc -l <"$debian/made") - 1)) dependencies:"

rm -rf "$debian/prove" && mkdir "$debian/prove"
cp -r "$prefix/include" "$prefix/lib" "$inputs" "$root/examples/deploy.cpp" "$debian/prove/"
# compile PROGRAM FLAG...: builds and strips deploy.cpp
compile() {
  local command="g++ -std=c++20 -O2 -I include/quantrain deploy.cpp -L lib -lquantrain_runtime -Wl,--gc-sections ${*:2} -o $1"
  echo "  $command"
  chroot "$debian" sh -c "cd /prove && $command && strip -o $1.stripped $1" || { fail "it does not compile"; exit 1; }
}
compile deploy
compile deploy_static -static
for program in deploy.stripped deploy_static.stripped; do
  chroot "$debian" sh -c "cd /prove && for i in inputs/*.image; do ./$program inputs/model.safetensors \$i; done" \
    >"$debian/prove/$program.logits" || fail "$program ends with an error"
  if cmp -s "$inputs/expected" "$debian/prove/$program.logits"; then
    echo "$program: the logits of $(wc -l <"$inputs/expected") images are those of the full build"
  else
    fail "$program: other logits than the full build's"
  fi
done

bytes() { stat -c %s "$1"; }
program=$debian/prove/deploy
echo "It needs: $(objdump -p "$program" | awk '/NEEDED/ { printf "%s%s", sep, $2; sep = ", " }')"

# The symbols of the training libraries, and of the libraries that they use.
defined() { nm --defined-only "$@" 2>/dev/null | awk 'NF == 3 && $2 ~ /[TDBR]/ { print $3 }' | sort -u; }
defined "$full"/framework/libquantrain_framework.a "$full"/layers/*.a "$full"/quant/*.a >"$slim/training"
found=$({ defined "$program" | comm -12 "$slim/training" -; nm -C "$program" | grep -E 'tbb::|xt::|quantrain::(quant|layers)::' || true; } | head)
if [[ -z $found ]]; then
  echo "None of the $(wc -l <"$slim/training") symbols of training are in it, nothing of oneTBB or xtensor"
else
  fail "the program has symbols of training: $found"
fi

echo
echo "Bytes of code and constants, by the runtime's objects:"
objects=$slim/framework/CMakeFiles/quantrain_runtime.dir
(cd "$objects" && find . -name '*.o' -print0 | xargs -0 size) | awk '
  NR > 1 {
    path = $6; sub(/^\.\//, "", path)
    if (path ~ /^kernels\/arch\//) { area = path; sub(/\.cpp\.o$/, "", area) }
    else if (path ~ /^kernels\/reference\//) area = "kernels/reference"
    else { area = path; sub(/\/.*/, "", area) }
    sum[area] += $1; all += $1
  }
  END { for (area in sum) printf "  %9d  %s\n", sum[area], area; printf "  %9d  all\n", all }' | sort -rn
nm -C -S --defined-only "$program" | awk '
  $4 ~ /nlohmann/ || / nlohmann::/ { size = 0; for (i = 1; i <= 16; ++i) size = 16 * size + index("0123456789abcdef", substr($2, i, 1)) - 1; sum += size }
  END { printf "  %9d  of the program: nlohmann_json\n", sum }'
size=$(bytes "$program.stripped")
printf '  %9d  the program, dynamic, stripped: at most %d\n' "$size" "$largest"
printf '  %9d  the program, static, stripped\n' "$(bytes "$debian/prove/deploy_static.stripped")"
if [[ $size -gt $largest ]]; then fail "the program is larger than $largest bytes"; fi
if [[ $held == no ]]; then echo "NOT ALL OF IT HOLDS."; exit 1; fi
echo "All of it holds."
