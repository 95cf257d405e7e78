#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh checkout to a trained LeNet-5: installs what is missing, builds, obtains data, trains, says what to try next.
set -euo pipefail

usage() {
  cat << 'END'
usage: tools/quickstart.sh [--yes] [--data DIR | --sample] [--] [OPTION FOR lenet_train]...

  --yes       install missing packages without asking (without a terminal nobody is asked anyway)
  --data DIR  train on the MNIST files in DIR; the environment's VITRO_MNIST_DIR says the same
  --sample    train on the small sample in data/sample and download nothing
  --help      this text

Without --data and --sample: data/mnist if it is there, else MNIST is downloaded into it, else the sample.
Builds in build/. What follows goes to lenet_train: tools/quickstart.sh -- --epochs 3 --threads 2

Exit codes: 2 wrong usage; 10 a package is missing and may not be installed; 11 the compiler or CMake is too old; 12 it did not
build; 13 the folder that was named has no data set; otherwise what lenet_train returns, 0 for success.
END
}

say() { printf '\n== %s\n' "$*"; }
die() {
  local code=$1
  shift
  printf 'quickstart: %s\n' "$@" >&2
  exit "$code"
}

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
data=
sample=
yes=
while (($#)); do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --yes | -y) yes=1 ;;
    --sample) sample=1 ;;
    --data)
      (($# >= 2)) || die 2 "--data needs a folder"
      data=$2
      [[ -n $data ]] || die 2 "--data needs a folder"
      shift
      ;;
    --data=*) data=${1#--data=} ;;
    --) shift && break ;;
    *) die 2 "unknown option $1; options for lenet_train come after --, and --help shows quickstart's own" ;;
  esac
  shift
done

[[ -z $data || -z $sample ]] || die 2 "--data and --sample exclude each other"
[[ -n $sample ]] || data=${data:-${VITRO_MNIST_DIR:-}}

# has_mnist DIR: whether all four files are there under any of their names.
has_mnist() {
  local stem name
  for stem in train-images:idx3 train-labels:idx1 t10k-images:idx3 t10k-labels:idx1; do
    for name in "$1/${stem/:/-}-ubyte"{,.gz} "$1/${stem/:/.}-ubyte"{,.gz}; do
      [[ ! -f $name ]] || continue 2
    done
    return 1
  done
}

install_missing() {
  # shellcheck source-path=SCRIPTDIR
  source "$root/tools/packages.sh"
  need_command "${CXX:-c++}" g++
  need_command cmake cmake
  command -v ninja > /dev/null || need_command make make
  need_command gzip gzip
  need_header zlib.h zlib1g-dev
  need_header CLI/CLI.hpp libcli11-dev
  if [[ -z $data && -z $sample ]] && ! has_mnist "$root/data/mnist" && ! command -v curl wget python3 > /dev/null; then
    missing_packages+=(curl ca-certificates)
  fi
  ((${#missing_packages[@]})) || return 0
  if [[ -z $yes && -t 0 ]]; then
    echo "To build Vitro and to read its data, these packages are missing: ${missing_packages[*]}"
    local answer
    read -r -p "Install them with apt-get? [Y/n] " answer
    [[ -z $answer || $answer == [yY]* ]] ||
      die 10 "nothing was installed; to do it yourself: apt-get install ${missing_packages[*]}"
  fi
  # In a subshell, because it exits with a code of its own.
  (install_missing_packages "to build Vitro and to read its data") || die 10 "the packages above are needed"
}

check_versions() {
  local version
  version=$(cmake --version | sed -n '1s/.* //p')
  if [[ $(printf '%s\n' 3.20 "$version" | sort -V | head -n 1) != 3.20 ]]; then
    die 11 "CMake is $version and must be 3.20 or newer; Debian 12 and Ubuntu 22.04 have one, as does: pip install cmake"
  fi
  # What the library needs newest: the number conversions that GCC 11 brought.
  if ! printf '%s\n' '#include <charconv>' '#include <ranges>' '#include <span>' \
    'int main() { double d = 0; return std::from_chars("", "", d).ptr == nullptr; }' |
    "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2> /dev/null; then
    die 11 "${CXX:-c++} cannot compile C++20; GCC 11 or newer and Clang 14 or newer can. CXX=g++-12 $0 chooses another compiler"
  fi
}

build_vitro() {
  mkdir -p "$build" || die 12 "cannot create $build"
  local log=$build/quickstart.log
  local options=(-D CMAKE_BUILD_TYPE=Release -D VITRO_BUILD_TOOLS=ON)
  if [[ ! -f $build/CMakeCache.txt ]]; then
    options+=(-D VITRO_BUILD_TESTS=OFF)
    ! command -v ninja > /dev/null || options+=(-G Ninja)
  fi
  if ! cmake -S "$root" -B "$build" "${options[@]}" > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    die 12 "CMake could not configure (all of it: $log). A build folder from elsewhere does that too: rm -r $build"
  fi
  cmake --build "$build" --target lenet_train --parallel "$(nproc)" ||
    die 12 "the build failed; the compiler's messages are above"
}

# Sets `data`.
obtain_data() {
  if [[ -n $data ]]; then
    has_mnist "$data" || die 13 "the folder $data does not hold MNIST's four files (train-images-idx3-ubyte or .gz, and so on)"
    return
  fi
  if [[ -z $sample ]]; then
    data=$root/data/mnist
    if has_mnist "$data"; then
      echo "MNIST is in $data"
      return
    fi
    echo "Downloading MNIST (12 MB) into $data"
    if "$root/tools/fetch_mnist.sh" "$data"; then return; fi
    cat << 'END'

!! MNIST could not be downloaded. Training goes on with the SAMPLE in data/sample: 6,000 images of clothes
!! (Fashion-MNIST), a tenth as many and harder than digits. Do not compare its accuracy with MNIST's.
!! With MNIST's four files in a folder DIR: tools/quickstart.sh --data DIR
END
  fi
  data=$root/data/sample
}

say "What the build needs"
install_missing
check_versions
echo "There: $("${CXX:-c++}" --version | head -n 1); $(cmake --version | head -n 1)"

say "Building (Release) in $build"
build_vitro

say "Data"
obtain_data
echo "Using $data"

train=$build/tools/lenet_train
# The trained model is kept, unless these options say what to do with it.
model=$build/lenet5
for option in "$@"; do
  case $option in
    --save | --save=* | --load | --load=* | --eval | --help) model= ;;
  esac
done

say "Training LeNet-5"
status=0
"$train" --data "$data" ${model:+--save "$model"} "$@" || status=$?
((status == 0)) || die "$status" "lenet_train ended with exit code $status; its message is above, and --help lists the codes"

say "What to try next"
if [[ -n $model ]]; then
  printf 'the saved model on the test images:  %q --data %q --load %q --eval\n' "$train" "$data" "$model"
fi
printf 'other settings:                      %q -- --epochs 3 --threads 1 --isa scalar\n' "$0"
printf 'all of them:                         %q --help\n' "$train"
printf 'the tests:                           %q\n' "$root/tools/test.sh"
printf 'how it works:                        %q\n' "$root/README.md"
