#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How large the inference-only program is, and how much stack it needs. Builds the embedded preset, for size and for speed.
set -euo pipefail

usage() {
  cat << 'END'
usage: tools/footprint.sh [--build DIR] [--model FOLDER] [--only Os|O2]

Prints the size of tools/embedded's program (text holds code and constants; the C and C++ libraries are not in it), built with
-Os and with -O2, and an upper bound of its stack from the compiler's call graph (GCC; tools/stack_bound.py says how).
--model: also runs it with the model saved in FOLDER and fails if it used more stack than that bound.
Builds in DIR (build-footprint).
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-footprint
model=
levels=(Os O2)
while (($#)); do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --build) build=$(realpath -m "$2") && shift ;;
    --model) model=$(realpath -e "$2") && shift ;;
    --only) levels=("$2") && shift ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
cd "$root"

preset_flags=$(python3 -c 'import json
for preset in json.load(open("CMakePresets.json"))["configurePresets"]:
    if preset["name"] == "embedded": print(preset["cacheVariables"]["CMAKE_CXX_FLAGS"])')
echo "inference-only program, $(uname -m), $("${CXX:-g++}" --version | head -n 1)"
for level in "${levels[@]}"; do
  mkdir -p "$build"
  log=$build/$level.log
  if ! { cmake --preset embedded -B "$build/$level" -D CMAKE_CXX_COMPILER="${CXX:-g++}" -D CMAKE_CXX_FLAGS_MINSIZEREL="-$level -DNDEBUG" \
    -D CMAKE_CXX_FLAGS="$preset_flags -fcallgraph-info=su" && cmake --build "$build/$level" --target infer; } > "$log" 2>&1; then
    tail -n 30 "$log" >&2
    exit 1
  fi
  size "$build/$level/tools/embedded/infer" | awk -v level="-$level" \
    'NR == 2 { printf "%s: text %d, data %d, bss %d bytes\n", level, $1, $2, $3 }'
  # Kernels beyond the baseline, which a program for one known processor can leave out.
  find "$build/$level" -path '*vitro_simd_*' -name '*.o' -exec size {} + |
    awk '$1 ~ /^[0-9]/ { bytes += $1 } END { printf "     of it %d for the kernels with FMA, AVX2 and AVX-512\n", bytes }'

  # What a session's run calls through pointers: steps and parts of loops, which are lambdas, and kernels.
  program=$build/$level/tools/embedded/infer
  mapfile -t bounds < <(python3 tools/stack_bound.py "$program" 'anonymous}::load\(' &&
    python3 tools/stack_bound.py --indirect 3 --only 'vitro::simd::|<lambda|::_FUN' "$program" 'anonymous}::infer\(')
  printf '     stack: %s\n' "${bounds[@]}"
  if [[ -n $model ]]; then
    used=$(head -c 784 /dev/zero | "$build/$level/tools/embedded/infer" "$model" --stack | grep '^stack:')
    echo "     measured $used"
    read -r -a numbers <<< "$(printf '%s\n' "$used" "${bounds[@]}" | grep -oE '[0-9]+ bytes' | grep -oE '[0-9]+' | tr '\n' ' ')"
    if ((numbers[0] > numbers[2] || numbers[1] > numbers[3])); then
      echo "more stack was used than the bound says" >&2
      exit 1
    fi
  fi
done
