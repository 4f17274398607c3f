# Other scripts source this file. Its functions build the programs for 64-bit Arm and the plugin that counts
# instructions, and run arm_layers.
arm_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

# build_layers FOLDER FLOATS: builds the program FOLDER/arm_layers and, if FLOATS is ON, FOLDER/arm_float_layers. Silent
# unless it fails.
build_layers() {
  mkdir -p "$1"
  if ! { cmake -S "$arm_root/tests/proofs/arm" -B "$1" -G Ninja -D CMAKE_TOOLCHAIN_FILE="$arm_root/cmake/aarch64.cmake" \
               -D CMAKE_BUILD_TYPE=Release -D FLOATS="$2" && cmake --build "$1"; } >"$1/log" 2>&1; then
    tail -n 50 "$1/log" >&2
    return 1
  fi
}
# build_plugin FOLDER: builds FOLDER/count.so for this machine's qemu-aarch64.
build_plugin() {
  local version
  version=$(qemu-aarch64 --version | awk 'NR == 1 { split($3, numbers, "."); print (numbers[1] >= 9 ? 2 : 1) }')
  cc -O2 -Wall -Wextra -Werror -shared -fPIC -D VERSION="$version" -o "$1/count.so" "$arm_root/tests/proofs/arm/count.c"
}
# run_layers CPU FOLDER ARGUMENT...: runs FOLDER/arm_layers in the emulator. -L names the cross compiler's folder, where
# the program finds its libraries.
run_layers() { qemu-aarch64 -cpu "$1" -L /usr/aarch64-linux-gnu "$2/arm_layers" "${@:3}"; }
