#!/bin/bash
# scripts/prove mpi [--kills N] [--programs "NAME..."] [--ranks "N..."] [--limit N] [--data FOLDER] [--mpi "NAME..."]:
# trains the examples on ranks of MPI. Shows that 1, 2, 3, 5 and 8 ranks give the bytes of one process without MPI: the
# float states, the QAT states and the integer model, with 8 and 4 bits, with Open MPI and with MPICH. Kills (SIGKILL) a
# random rank at a random moment, and shows that all ranks end within seconds, that the dead one is named in at least 9 of
# 10 kills (in training by quantrain under Open MPI, and by quantrain or the launcher under MPICH; before and after
# training by Open MPI's launcher), and that runs that are resumed on another number of ranks end with the same bytes.
# Prints the time of a step and the bytes that a rank sends, for each number of ranks, and what follows from them, on
# paper, for networks of 1 and 25 Gbit/s. Takes about an hour on two cores.
# --data: a folder of MNIST's format for the programs that need images; else the first images of Fashion-MNIST.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/packages"
source "$root/tests/proofs/runs.sh"
kills=100 epochs=1 counts="1 2 3 5 8" limit=1000 data="" mpis="openmpi mpich"
programs="mnist_mlp mnist_cnn mnist_bncnn mnist_resnet sensor_classification image_classification anomaly_detection keyword_spotting"
while [[ $# -gt 0 ]]; do
  case $1 in
    --kills) kills=$2 ;;
    --programs) programs=$2 ;;
    --ranks) counts=$2 ;;
    --limit) limit=$2 ;;
    --data) data=$2 ;;
    --mpi) mpis=$2 ;;
    *) echo "unknown: $1"; exit 2 ;;
  esac
  shift 2
done
need_packages "${build_packages[@]}" "${demo_packages[@]}" "${mpi_packages[@]}" libmpich-dev mpich libkissfft-dev espeak-ng procps
# In containers everybody is root, and there may be fewer cores than ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# The builds for two implementations differ in the library quantrain_mpi alone, so they share a folder.
SECONDS=0
for mpi in $mpis; do
  cmake -S "$root" -B "$root/build/mpi" -G Ninja -U 'MPI*' -D CMAKE_BUILD_TYPE=Release -D QUANTRAIN_EXAMPLES=ON \
        -D QUANTRAIN_TESTS=OFF -D QUANTRAIN_MPI=ON -D QUANTRAIN_PROGRAM=OFF \
        -D MPI_CXX_COMPILER="$(command -v "mpicxx.$mpi")" -D MPIEXEC_EXECUTABLE="$(command -v "mpirun.$mpi")" >/dev/null
  # shellcheck disable=SC2086
  cmake --build "$root/build/mpi" --target $programs mnist_bncnn >/dev/null
  mkdir "$work/$mpi"
  for program in $programs mnist_bncnn; do cp "$root/build/mpi/examples/$program" "$work/$mpi/"; done
done
echo "Built in $SECONDS s."

# first_items FILE TO N HEADER BYTES: the first N items of an IDX file, which have so many bytes each.
first_items() {
  gunzip -c "$1" >"$work/all"
  {
    head -c 4 "$work/all"
    # shellcheck disable=SC2059
    printf "$(printf '\\x%02x' $(($3 >> 24 & 255)) $(($3 >> 16 & 255)) $(($3 >> 8 & 255)) $(($3 & 255)))"
    tail -c +9 "$work/all" | head -c $(($4 - 8 + $3 * $5)) || true  # tail meets a closed pipe
  } >"$2"
}
if [[ -z $data ]]; then
  data=$work/images
  mkdir "$data"
  for part in train t10k; do
    n=$limit
    if [[ $part == t10k ]]; then n=500; fi
    first_items "/usr/share/datasets/fashion-mnist/$part-images-idx3-ubyte.gz" "$data/$part-images-idx3-ubyte" "$n" 16 784
    first_items "/usr/share/datasets/fashion-mnist/$part-labels-idx1-ubyte.gz" "$data/$part-labels-idx1-ubyte" "$n" 8 1
  done
fi

# train MPI RANKS PROGRAM BITS FOLDER [FLAG...]: with 0 ranks, without a launcher. One thread in each rank.
train() {
  local mpi=$1 ranks=$2 program=$3 bits=$4 folder=$5 launcher=() own=()
  if [[ $ranks -gt 0 ]]; then launcher=("mpirun.$mpi" -n "$ranks"); fi
  case $program in
    sensor_classification) own=(--made "$folder/pump.csv" --rows 2000 --limit 1000) ;;
    anomaly_detection) own=(--clips 20 --validation-clips 5 --test-clips 5 --limit 1000) ;;
    keyword_spotting) own=(--cache "$work/speech" --voices 4 --takes 1 --copies 28 --limit 1000) ;;
    *) own=(--data "$data" --limit "$limit") ;;
  esac
  mkdir -p "$folder"
  exec "${launcher[@]}" "$work/$mpi/$program" "${own[@]}" --epochs "$epochs" --qat-epochs "$epochs" \
       --timing-calls 1 --seed 5 --threads 1 --shards 8 --weight-bits "$bits" --activation-bits "$bits" \
       --checkpoint "$folder/checkpoints" --save "$folder/model" --report "$folder/report" "${@:6}"
}

SECONDS=0
first_mpi=${mpis%% *}
: >"$work/steps"
for program in $programs; do
  for bits in 8 4; do
    alone=$work/$program-$bits
    (train "$first_mpi" 0 "$program" "$bits" "$alone") >"$work/log" 2>&1 || { tail -5 "$work/log"; exit 1; }
    # Checkpoints are named by their step. All trainings of a program have the same number of steps.
    steps=$((10#$(ls "$alone/checkpoints/float" | tail -1 | tr -cd '0-9')))
    trainings=$(ls "$alone/checkpoints" | wc -l)
    for mpi in $mpis; do
      for ranks in $counts; do
        folder=$work/ranks
        rm -rf "$folder"
        if ! (train "$mpi" "$ranks" "$program" "$bits" "$folder") >"$work/log" 2>&1; then
          tail -5 "$work/log"
          echo "$program, $bits bits, $mpi, $ranks ranks: failed"
          failures=$((failures + 1))
          continue
        elif equal_ends "$alone" "$folder"; then
          result=equal
        else
          result=different failures=$((failures + 1))
        fi
        seconds=$(tr -d ' \n' <"$folder/report" | sed -E 's/.*"float":\{[^}]*"seconds_per_epoch":\[([0-9.e-]+).*/\1/')
        step=$(awk -v seconds="$seconds" -v steps="$steps" 'BEGIN { printf "%.2f", seconds * 1000 / steps }')
        sent=$(sed -n 's/^rank 0 of .* sent \([0-9]*\) bytes.*/\1/p' "$work/log")
        bytes=$((${sent:-0} / (trainings * steps)))
        echo "$program, $bits bits, $mpi, $ranks ranks: $result; $step ms a step in float, $bytes bytes a step"
        echo "$program $ranks $step $bytes" >>"$work/steps"
      done
    done
  done
done
echo "Compared in $SECONDS s."

# The best time of a step for each number of ranks, and what follows, on paper, for machines that a network joins. A step
# of R ranks takes, added up:
# - 1 / R of the time of one rank,
# - what two ranks on this machine take beyond half of the time of one, for the optimizer, and to copy and join gradients,
# - the time to send 2 (R - 1) / R of the gradients, less half of the time of a shard: after its first gradients are there,
#   its backward pass goes on for so long,
# - the latency of 2 + 2 log2(R) messages, 50 us each at 1 Gbit/s, 15 us at 25 Gbit/s.
# More ranks pay as long as twice the ranks take at most 3/4 of the time.
echo
awk -v counts="$counts" '
  {
    if (!($1 in best)) names[++n] = $1
    if (!(($1, $2) in step) || $3 < step[$1, $2]) step[$1, $2] = $3
    best[$1] = 1
    if ($2 == 2) grads[$1] = $4
  }
  function seconds(name, ranks, rate, latency,   one, more, wire) {
    one = step[name, 1] / 1000
    if (ranks == 1) return one
    more = step[name, 2] / 1000 - one / 2
    wire = 2 * (ranks - 1) / ranks * grads[name] / rate - one / 16
    return one / ranks + (more > 0 ? more : 0) + (wire > 0 ? wire : 0) + latency * (2 + 2 * log(ranks) / log(2))
  }
  function paper(name, rate, latency,   r, text, pays) {
    pays = 1
    for (r = 2; r <= 8; r *= 2) {
      text = text sprintf(" %.1f", seconds(name, 1) / seconds(name, r, rate, latency))
      if (pays == r / 2 && seconds(name, r, rate, latency) <= 0.75 * seconds(name, r / 2, rate, latency)) pays = r
    }
    return text " | " pays
  }
  END {
    m = split(counts, ranks, " ")
    head = "| program | KB of gradients |"
    for (i = 1; i <= m; ++i) head = head " " ranks[i] " |"
    print head " 1 Gbit/s: 2, 4, 8 ranks | pays up to | 25 Gbit/s: 2, 4, 8 ranks | pays up to |"
    for (k = 1; k <= n; ++k) {
      line = "| " names[k] " | " int(grads[names[k]] / 1000) " |"
      for (i = 1; i <= m; ++i) line = line sprintf(" %.2f |", step[names[k], ranks[i]])
      print line paper(names[k], 125e6, 50e-6) " |" paper(names[k], 3125e6, 15e-6) " |"
    }
  }' "$work/steps"
echo

# Kills. Of each run, one rank is killed at a random moment; then it is resumed on another number of ranks, and killed
# again, until it ends. A launcher may take longer to start ranks than they train, so three of four kills wait until
# training has begun.
SECONDS=0
epochs=6
program=mnist_bncnn
whole=$work/whole
begin=$(date +%s%N)
(train "$first_mpi" 0 "$program" 4 "$whole" --checkpoint-every 3) >"$work/log" 2>&1
took=$((($(date +%s%N) - begin) / 1000000))
RANDOM=1
killed=0 equal=0 runs=0 slowest=0 hanging=0
declare -A kills_of by_quantrain by_launcher named  # by implementation and phase
# ranks_in FOLDER: the processes that run the program in it.
ranks_in() {
  ps -e -o pid=,stat=,comm=,args= | awk -v program="$program" -v folder="$1" \
    '$2 !~ /^Z/ && $3 == program && index($0, folder) { print $1 }'
}
# The phase of the run whose output is in $work/log. "training": all ranks are connected, and rank 0 has printed the
# network's table, but not yet the bytes that it sent.
phase() {
  if grep -aq "^rank 0 of .* sent" "$work/log"; then
    echo after
  elif grep -aq "^total " "$work/log"; then
    echo training
  else
    echo before
  fi
}
while [[ $killed -lt $kills ]]; do
  folder=$work/run
  rm -rf "$folder"
  runs=$((runs + 1))
  for ((ended = 0, tries = 0; ended == 0; ++tries)); do
    if [[ $tries -eq 50 ]]; then
      echo "run $runs does not end in 50 tries"
      tail -5 "$work/log"
      failures=$((failures + 1))
      break
    fi
    read -ra all <<<"$mpis"
    mpi=${all[RANDOM % ${#all[@]}]} ranks=$((2 + RANDOM % 4))
    : >"$work/log"
    (train "$mpi" "$ranks" "$program" 4 "$folder" --checkpoint-every 3 --resume) >>"$work/log" 2>&1 &
    launcher=$!
    if [[ $((RANDOM % 4)) -gt 0 ]]; then
      for ((waited = 0; waited < 1200; ++waited)); do
        [[ $(phase) == before ]] && kill -0 "$launcher" 2>/dev/null || break
        sleep 0.05
      done
    fi
    pause=$((RANDOM * took / 32768))
    sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
    mapfile -t processes < <(ranks_in "$folder")
    at=$(phase)
    victim=0
    if [[ ${#processes[@]} -gt 0 ]]; then victim=${processes[RANDOM % ${#processes[@]}]}; fi
    rank=$(tr '\0' '\n' 2>/dev/null <"/proc/$victim/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p' || true)
    if [[ $victim -gt 0 ]] && kill -KILL "$victim" 2>/dev/null; then
      killed=$((killed + 1)) begin=$(date +%s%N)
      for ((waited = 0; waited < 300; ++waited)); do
        mapfile -t left < <(ranks_in "$folder")
        [[ ${#left[@]} -gt 0 ]] || break
        sleep 0.1
      done
      ms=$((($(date +%s%N) - begin) / 1000000))
      if [[ $ms -gt $slowest ]]; then slowest=$ms; fi
      if [[ ${#left[@]} -gt 0 ]]; then
        echo "run $runs: ${#left[@]} ranks hang after a kill"
        failures=$((failures + 1))
        kill -KILL "${left[@]}" 2>/dev/null || true
      fi
      # Open MPI 4.1's launcher may wait for itself when all ranks have ended (PMIx_server_finalize), or crash.
      for ((waited = 0; waited < 100; ++waited)); do
        kill -0 "$launcher" 2>/dev/null || break
        sleep 0.1
      done
      if kill -KILL "$launcher" 2>/dev/null; then hanging=$((hanging + 1)); fi
      if wait "$launcher" 2>/dev/null; then
        ended=1  # the kill came too late
      else
        us=0 them=0
        if grep -aqE "rank [0-9]+ \(process $victim on [^)]*\) died" "$work/log"; then us=1; fi
        # MPICH's launcher has the number of a process that ended; it may be one that it has ended itself.
        if grep -aqE "process rank ${rank:-none} with PID .* exited on signal 9|PID $victim RUNNING" "$work/log"; then
          them=1
        fi
        kills_of[$mpi $at]=$((${kills_of[$mpi $at]:-0} + 1))
        by_quantrain[$mpi $at]=$((${by_quantrain[$mpi $at]:-0} + us))
        by_launcher[$mpi $at]=$((${by_launcher[$mpi $at]:-0} + them))
        named[$mpi $at]=$((${named[$mpi $at]:-0} + (us | them)))
        if ! grep -aqE "died|exited on signal 9|BAD TERMINATION" "$work/log"; then
          echo "run $runs does not say that a rank died"
          tail -5 "$work/log"
          failures=$((failures + 1))
        fi
      fi
    else
      status=0
      wait "$launcher" 2>/dev/null || status=$?
      if [[ $status -eq 0 ]]; then ended=1; fi
    fi
  done
  if equal_ends "$whole" "$folder"; then
    equal=$((equal + 1))
  else
    echo "run $runs differs"
    failures=$((failures + 1))
  fi
done
echo "$killed ranks killed in $runs runs: $equal runs equal; all ranks ended within $slowest ms; $SECONDS s"
if [[ $hanging -gt 0 ]]; then echo "$hanging launchers did not end after all ranks had"; fi
# Before ranks are connected, and once they take leave, only the launcher knows who died. MPICH's may also cut off
# quantrain's line.
bar() {
  if [[ $1 -eq 0 ]]; then
    echo "no rank was killed in training: use more --kills"
    failures=$((failures + 1))
  elif [[ $(($2 * 10)) -lt $(($1 * 9)) ]]; then
    echo "$3 must name at least 9 of 10"
    failures=$((failures + 1))
  fi
}
for mpi in $mpis; do
  for at in before training after; do
    n=${kills_of[$mpi $at]:-0} us=${by_quantrain[$mpi $at]:-0} either=${named[$mpi $at]:-0}
    echo "$mpi, killed $at: $n, named by quantrain $us, by the launcher ${by_launcher[$mpi $at]:-0}, by either $either"
    if [[ $at == training ]]; then
      if [[ $mpi == openmpi ]]; then bar "$n" "$us" quantrain; else bar "$n" "$either" "quantrain or the launcher"; fi
    elif [[ $mpi == openmpi && $n -gt 0 ]]; then
      bar "$n" "$either" "the launcher"
    fi
  done
done
[[ $failures -eq 0 ]]
