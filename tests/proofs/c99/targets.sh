# Sourced: the compilers and processors that exported C is tested with.
#   COMPILER-FLAG...                  this machine: gcc-O0, clang-O3-mavx2, gcc-O3-march=native
#   plain                             the same, without vectors: gcc -O3 -D CORE_PLAIN=1
#   aarch64 riscv64                   cross-compiled with -O2, under qemu-user
#   BOARD                             bare metal, by examples/cortex_m/run
#   BOARD/CPU                         the same, with code for another processor: mps2-an385/cortex-m0

c99_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
c99_flags=(-std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror)

is_board() { [[ $1 == mps* || $1 == microbit ]]; }
# missing TARGET: prints the first tool that the target needs and that is not installed
missing() {
  local tools tool
  case $1 in
    gcc-* | plain) tools=(gcc) ;;
    clang-*) tools=(clang) ;;
    aarch64 | riscv64) tools=("$1-linux-gnu-gcc" "qemu-$1") ;;
    *) tools=(arm-none-eabi-gcc arm-none-eabi-nm qemu-system-arm) ;;
  esac
  for tool in "${tools[@]}"; do
    if ! command -v "$tool" >/dev/null; then echo "$tool"; return; fi
  done
}
# run_program TARGET SOURCE FOLDER NAME ARGUMENT...: compiles SOURCE with FOLDER's network and runs it with the arguments
run_program() {
  local target=$1 source=$2 folder=$3 program=$3/$4.$1
  local command i emulator=()
  case $target in
    gcc-* | clang-*)
      IFS=- read -ra command <<<"$target"
      for i in "${!command[@]}"; do ((i == 0)) || command[i]=-${command[i]}; done
      ;;
    plain) command=(gcc -O3 -D CORE_PLAIN=1) ;;
    *) command=("$target-linux-gnu-gcc" -O2 -static) emulator=("qemu-$target") ;;
  esac
  "${command[@]}" "${c99_flags[@]}" -I "$folder" "$source" -o "$program" && "${emulator[@]}" "$program" "${@:5}"
}
# foreign_symbols OBJECT: prints what a Cortex-M object calls, except for C's memory functions and the compiler's
# helpers for integer instructions that the processor lacks. Floating point and 64-bit division are not among these
# helpers.
foreign_symbols() {
  arm-none-eabi-nm -u "$1" | awk '{ print $NF }' | grep -vxE \
    'memcpy|memset|memmove|__aeabi_mem(cpy|set|clr|move)[48]?|__aeabi_(lmul|llsl|llsr|lasr|u?idiv|u?idivmod)|__gnu_thumb1_case_(s|u)(qi|hi|si)' ||
    true
}
# test_on TARGET FOLDER NAME: builds and runs NAME_test.c, and prints its output; fails if a result is wrong, or if a
# Cortex-M object has foreign symbols
test_on() {
  local target=$1 folder=$2 name=$3 board cpu=() foreign
  if ! is_board "$target"; then
    run_program "$target" "$folder/${name}_test.c" "$folder" "$name"
    return
  fi
  board=${target%/*}
  if [[ $target == */* ]]; then cpu=("-mcpu=${target#*/}"); fi
  # Two processors on one board must not write to the same file.
  mkdir -p "$folder/$target"
  cp "$folder/$name".[ch] "$folder/${name}_test.c" "$folder/$target/"
  "$c99_root/examples/cortex_m/run" "$board" "$folder/$target" "$name" "${cpu[@]}" -Werror || return
  foreign=$(foreign_symbols "$folder/$target/$name.$board.o")
  if [[ -n $foreign ]]; then
    echo "calls ${foreign//$'\n'/, }"
    return 1
  fi
}

# report LABEL TARGET COMMAND...: prints how many results are equal, and appends a line to $c99_results
report() {
  local label=$1 target=$2 tool log status=0 line count
  tool=$(missing "$target")
  if [[ -n $tool ]]; then
    line="skipped: no $tool"
  else
    log=$("${@:3}" 2>&1) || status=$?
    line=$(grep -m 1 -oE '^[0-9]+ of [0-9]+ equal' <<<"$log" || true)
    if [[ $status -ne 0 || -z $line ]]; then line="NOT EQUAL: ${line:-status $status}"$'\n'"$(head -n 6 <<<"$log")"; fi
    count=$(awk '$1 == "all" { print $3 }' <<<"$log")
    if [[ -n $count ]]; then line+=", $count instructions each"; fi
  fi
  printf '%-24s %-24s %s\n' "$label" "$target" "$line"
  case $line in
    skipped*) echo "skipped $target" ;;
    NOT*) echo "failed $label $target" ;;
    *) echo "equal" ;;
  esac >>"$c99_results"
}
# check_failure NAME COMMAND...: the command must fail, because a check that cannot fail proves nothing
check_failure() {
  if "${@:2}" >/dev/null 2>&1; then
    echo "prove c99: a wrong network passes as equal: $1" >&2
    exit 2
  fi
}
# check_symbols FOLDER: foreign_symbols() must find floats and 64-bit divisions
check_symbols() {
  echo 'float f(float x, long long n, long long m) { return x * (float)(n / m); }' >"$1/foreign.c"
  arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -O2 -c "$1/foreign.c" -o "$1/foreign.o"
  local symbol found
  found=$(foreign_symbols "$1/foreign.o")
  for symbol in __aeabi_fmul __aeabi_ldivmod; do
    if ! grep -qx $symbol <<<"$found"; then
      echo "prove c99: the check of symbols does not see $symbol" >&2
      exit 2
    fi
  done
}
# spoil FOLDER NAME COPY: copies a network's test, and changes the expected checksum of the first step
spoil() {
  mkdir -p "$3"
  cp "$1/$2".[ch] "$3/"
  awk '/ test_(checksums|output)[a-z_0-9]*\[/ && !done { print; getline; sub(/-?[0-9]+/, "1"); done = 1 } { print }' \
    "$1/$2_test.c" >"$3/$2_test.c"
}
# conclude: prints the totals of $c99_results; status 1 if any result is not equal
conclude() {
  local equal failed skipped
  equal=$(grep -c '^equal' "$c99_results" || true)
  failed=$(grep -c '^failed' "$c99_results" || true)
  skipped=$(grep -c '^skipped' "$c99_results" || true)
  echo "$equal equal, $failed not equal, $skipped skipped"
  [[ $failed -eq 0 && $equal -gt 0 ]]
}
