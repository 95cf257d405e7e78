#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Vitro (Release) with all its tests, runs them and prints a summary. Works from any directory.
set -euo pipefail

usage() {
  cat << 'END'
usage: tools/test.sh [--build DIR] [--configure OPTION]... [CTEST ARGUMENT]...

Installs the packages that are missing (as root or through sudo; says which and why), builds into DIR (build-release) and runs
the tests. --configure hands an option to CMake. What is not understood goes to ctest: tools/test.sh -L unit -R gemm

The tests that need the MNIST data set look for it where VITRO_MNIST_DIR points, then in data/mnist; without it they are skipped.

Exit codes: 0 all passed; 1 a test failed; 2 it did not build, or an option lacks its value; 3 a package is missing and may not be installed.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-release
configure=()
ctest_arguments=()
while (($#)); do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --build | --configure)
      if [[ -z ${2:-} ]]; then
        echo "test.sh: $1 needs a value; --help says which" >&2
        exit 2
      fi
      if [[ $1 == --build ]]; then build=$(realpath -m "$2"); else configure+=("$2"); fi
      shift
      ;;
    *) ctest_arguments+=("$1") ;;
  esac
  shift
done

# shellcheck source-path=SCRIPTDIR
source "$root/tools/packages.sh"
need_command "${CXX:-c++}" g++
need_command cmake cmake
need_command ninja ninja-build
need_command python3 python3-minimal
need_header zlib.h zlib1g-dev
need_header CLI/CLI.hpp libcli11-dev
need_header nlohmann/json.hpp nlohmann-json3-dev
need_package catch2
install_missing_packages "to build and run the tests"

if [[ -z ${VITRO_MNIST_DIR:-} && -d $root/data/mnist ]]; then
  export VITRO_MNIST_DIR=$root/data/mnist
fi

cd "$root"
if ! { cmake -S . -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D VITRO_BUILD_TESTS=ON -D VITRO_BUILD_TOOLS=ON \
  "${configure[@]}" && cmake --build "$build"; }; then
  echo "The build failed: nothing was tested." >&2
  exit 2
fi

log=$build/test.log
code=0
ctest --test-dir "$build" --parallel "$(nproc)" --output-on-failure --no-tests=error "${ctest_arguments[@]}" | tee "$log" || code=1

if [[ -z ${VITRO_MNIST_DIR:-} ]]; then
  echo "skipped: what needs MNIST, since VITRO_MNIST_DIR is not set and data/mnist is not there"
fi
count() {
  grep -cE "^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*$1" "$log" || true
}
total=$(count '')
passed=$(count '   Passed +')
skipped=$(count '\*\*\*Skipped +')
echo "$passed passed, $((total - passed - skipped)) failed, $skipped skipped"
exit "$code"
