#!/bin/bash
# scripts/prove guide [FOLDER]: runs the commands of the guide, page by page, in an empty Debian 12, which
# debootstrap makes or which is copied from FOLDER. Before the guide's first build, also runs README.md's line that
# builds and installs the library. Stops at the first command that fails.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"
source "$root/tests/proofs/debian.sh"

need_root guide
empty=${1:-$root/build/debian/bookworm}
work=$root/build/debian/guide
empty_debian bookworm "$empty"
copy_debian "$empty" "$work"
copy_sources "$root" "$work/root/sources"

commands=$work/root/commands
line=$(grep -m 1 '^    cmake --preset release && ' "$root/README.md")
mapfile -t pages < <(grep -o 'guide/[[:lower:]]*\.md' "$root/docs/guide.md")
cd "$root/docs"
awk -v line="${line/<where>//root/prefix}" '
  /^```sh$/ { on = 1; next } /^```$/ { on = 0 }
  on && $0 == "cmake --preset release" { print line; found = 1 }
  on
  END { exit !found }' "${pages[@]}" >"$commands"
echo "In an empty Debian $(cat "$work/etc/debian_version"), $(in_debian "$work" dpkg-query -W -f '.\n' | wc -l) packages:"
in_debian "$work" apt-get update -qq
if ! in_debian "$work" bash -c 'cd /root/sources && exec bash -euxo pipefail ../commands' >"$work/log" 2>&1; then
  tail -n 40 "$work/log" >&2
  echo "NOT SO: the last command above failed."
  exit 1
fi
grep -E '^\+|accuracy|class|equal|wrong' "$work/log"
echo "All $(grep -c '^+' "$work/log") commands of the guide work."
