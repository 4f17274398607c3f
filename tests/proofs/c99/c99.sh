#!/bin/bash
# scripts/prove c99 --layers: see layers.sh.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"

need_packages "${build_packages[@]}" "${test_packages[@]}"
echo "Building."
cmake -S "$root" --preset release -D QUANTRAIN_TESTS=ON -D QUANTRAIN_EXAMPLES=ON >/dev/null
cmake --build "$root/build/release" --target c99_programs >/dev/null
if [[ ${1:-} == --layers ]]; then exec "$root/tests/proofs/c99/layers.sh" "${@:2}"; fi
echo "usage: scripts/prove c99 --layers" >&2
exit 2
