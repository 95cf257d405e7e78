#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Is the working tree slower than BASE? bench/regress.sh [BASE] [--filter REGEX] [--rounds N] [--build DIR] [--built DIR]
#
# Builds both (Release), runs the family benchmarks of both in alternation, and takes for each row the median of the ratios of
# neighbouring runs. A row that is more than 1.10 times slower, in the best runs as well, is run again, with the other suspects
# alone; it fails when that happens in three tries in a row.
#   BASE            a commit; by default the newest release tag (v*), or else the commit before HEAD
#   --filter REGEX  rows to run; by default those of the best instruction set of this machine
#   --rounds N      pairs of runs in the first try (5); the others have five times as many
#   --build DIR     where to build and to leave the figures (build-regress)
#   --built DIR     a Release build of the working tree with its benchmarks, which need not be built again then
# Exit codes: 0 not slower, 1 slower, 2 usage or no such commit, 3 a build failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

base='' filter='' rounds=5 build=build-regress built=''
while (($# > 0)); do
  case $1 in
    --filter | --rounds | --build | --built)
      (($# > 1)) || { echo "regress.sh: $1 needs a value." >&2; exit 2; }
      case $1 in
        --filter) filter=$2 ;;
        --rounds) rounds=$2 ;;
        --build) build=$2 ;;
        --built) built=$2 ;;
      esac
      shift 2
      ;;
    -*) echo "regress.sh: unknown option $1; see the head of this file." >&2; exit 2 ;;
    *) base=$1; shift ;;
  esac
done
if [[ -z $base ]]; then
  base=$(git describe --tags --abbrev=0 --match 'v*' HEAD 2>/dev/null || echo HEAD~1)
fi
commit=$(git rev-parse --verify --quiet "$base^{commit}") || {
  echo "regress.sh: there is no commit $base to compare with (a shallow clone may lack it)." >&2
  exit 2
}
if [[ -z $filter ]]; then
  if grep -qw avx512f /proc/cpuinfo; then
    filter=avx512
  elif grep -qw avx2 /proc/cpuinfo; then
    filter=avx2
  else
    filter=blocked
  fi
fi

mkdir -p "$build"
build=$(realpath "$build")
rm -rf "$build/base-source" "$build/runs"
mkdir -p "$build/base-source" "$build/runs"
git archive "$commit" | tar -x -C "$build/base-source"
programs=(gemm_bench vector_bench ops_bench)

# make SIDE SOURCE: the programs of one side in $build/SIDE.
make_side() {
  if ! { cmake -S "$2" -B "$build/$1" -D CMAKE_BUILD_TYPE=Release -D VITRO_BUILD_BENCH=ON -D VITRO_BUILD_TESTS=OFF \
    -D VITRO_BUILD_TOOLS=OFF && cmake --build "$build/$1" --parallel "$(nproc)" --target "${programs[@]}"; } > "$build/$1.log" 2>&1; then
    tail -n 30 "$build/$1.log" >&2
    echo "regress.sh: the build of $2 failed; all of it is in $build/$1.log." >&2
    exit 3
  fi
}
make_side base "$build/base-source"
if [[ -n $built ]]; then
  rm -rf "$build/new"
  mkdir -p "$build/new/bench"
  for program in "${programs[@]}"; do
    cp "$built/bench/$program" "$build/new/bench/" || exit 3
  done
else
  make_side new .
fi
echo "base: $(git log -1 --format='%h %s' "$commit")"

# run_side SIDE PROGRAM TRY ROUND: one JSON, on the last core that this process may use.
core=$(taskset -pc $$ | sed 's/.*[ ,-]//')
run_side() {
  taskset -c "$core" "$build/$1/bench/$2" --benchmark_filter="$filter" --benchmark_min_time=0.02 \
    --benchmark_out="$build/runs/$3-$4-$1-$2.json" --benchmark_out_format=json > /dev/null 2>&1
}
for try in 1 2 3; do
  for ((round = 0; round < rounds; ++round)); do
    # Who goes first alternates: the first run of a pair finds other caches and another clock than the second.
    if ((round % 2 == 0)); then order=(base new); else order=(new base); fi
    for program in "${programs[@]}"; do
      for side in "${order[@]}"; do run_side "$side" "$program" "$try" "$round"; done
    done
  done
  echo "try $try:"
  if bench/compare_runs.py "$build/runs" "$try" --slower "$build/slower.txt"; then
    echo "Not slower than the base."
    exit 0
  fi
  filter=$(cat "$build/slower.txt")
  # The suspects are few, so that pairs are close together, and many pairs are cheap.
  ((try > 1)) || rounds=$((5 * rounds))
done
echo "Slower than the base in three tries in a row."
exit 1
