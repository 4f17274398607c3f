#!/bin/bash
# scripts/prove packages [SUITE[=FOLDER]...]: builds the Debian packages, installs them in an empty Debian, and builds
# and runs programs there, with the compiler and pkg-config, and with CMake. Does so for each SUITE, by default bookworm
# and trixie. The empty Debian is made by debootstrap or copied from FOLDER.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
source "$root/scripts/packages"
source "$root/tests/proofs/debian.sh"

need_root packages
suites=("$@")
if [[ $# -eq 0 ]]; then suites=(bookworm trixie); fi

# run FOLDER COMMAND: prints nothing unless the command fails.
run() {
  if in_debian "$1" bash -euxc "$2" >"$1/log" 2>&1; then return; fi
  tail -n 40 "$1/log" >&2
  echo "NOT SO: $2"
  exit 1
}
for suite in "${suites[@]}"; do
  empty=$root/build/debian/${suite%%=*}
  if [[ $suite == *=* ]]; then empty=${suite#*=}; fi
  suite=${suite%%=*}
  empty_debian "$suite" "$empty"
  echo "Debian $(cat "$empty/etc/debian_version"):"

  builder=$root/build/debian/$suite-build
  copy_debian "$empty" "$builder"
  copy_sources "$root" "$builder/root/sources"
  run "$builder" "apt-get update -q && apt-get install -y -q --no-install-recommends ${build_packages[*]} dpkg-dev file"
  run "$builder" 'cd /root/sources && cmake --preset packages && cmake --build --preset packages'
  run "$builder" 'cd /root/sources/build/packages && cpack'

  clean=$root/build/debian/$suite-clean
  copy_debian "$empty" "$clean"
  mkdir "$clean/root/debs"
  cp "$builder"/root/sources/build/packages/*.deb "$clean/root/debs"
  cp -r "$root/tests/consumer" "$root/docs/guide/device.cpp" "$clean/root"
  for deb in "$clean"/root/debs/*.deb; do
    echo "  $(basename "$deb"), $(stat -c %s "$deb") bytes, needs $(in_debian "$clean" dpkg-deb -f "/root/debs/$(basename "$deb")" Depends)"
  done
  run "$clean" 'apt-get update -q && apt-get install -y -q --no-install-recommends /root/debs/libquantrain-runtime_*.deb'
  echo "  the runtime alone installs: $(in_debian "$clean" sh -c 'ldd /usr/lib/*/libquantrain_runtime.so.*.*.* | grep -c "=>"') libraries, all found"
  run "$clean" 'ldd /usr/lib/*/libquantrain_runtime.so.*.*.*; ! ldd /usr/lib/*/libquantrain_runtime.so.*.*.* | grep "not found"'
  run "$clean" 'apt-get install -y -q --no-install-recommends /root/debs/*.deb g++ cmake make pkg-config'
  run "$clean" 'cd /root && g++ -std=c++20 -O2 device.cpp $(pkg-config --cflags --libs quantrain-runtime) -o device
    (./device 2>&1 || true) | grep "model.safetensors"'
  run "$clean" 'cd /root && g++ -std=c++20 -O2 consumer/framework.cpp $(pkg-config --cflags --libs quantrain) -o fit && ./fit'
  run "$clean" 'cd /root && echo >headers.cpp && cmake -S consumer -B build && cmake --build build && build/consumer | grep "^quantrain "'
  run "$clean" 'cd /root && cmake -S consumer/runtime -B build_runtime -D THREADS=ON && cmake --build build_runtime && build_runtime/runtime_consumer'
  run "$clean" 'quantrain --version | grep "^quantrain " && test -s /usr/share/man/man1/quantrain.1'
  echo "  programs by pkg-config and by CMake are built and run"
done
echo "All of it holds."
