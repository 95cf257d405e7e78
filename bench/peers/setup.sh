#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Obtains the libraries that bench/peers compares Vitro with: wheels from PyPI into one folder, packages from Debian.
set -euo pipefail

usage() {
  cat << 'END'
usage: bench/peers/setup.sh [--help] [DIR]

Puts the peers into DIR, by default ${XDG_CACHE_HOME:-~/.cache}/vitro-peers (1 GB), and says how to build with them. What is
there already is not fetched again; remove DIR/NAME to renew one.

From PyPI, because Debian has old ones or none (each is optional; what cannot be fetched is named and left out):
  scipy-openblas32      OpenBLAS, newer than Debian's, which does not know processors after 2022 and then multiplies at a fifth of
                        their speed
  mkl, mkl-include      Intel's BLAS, and its headers
  paddlepaddle, onednn-devel-cpu-gomp
                        for the newest oneDNN on PyPI that is built for OpenMP (nothing else is taken out of the first), and
                        headers. The onednn wheel (2026.1, version 3.13) is built for SYCL, which passes every call through a
                        queue to another thread: 64x64x64 took 13.0 us with it and 3.5 us with this one (3.6), and none of
                        seven convolutions was faster beyond noise, so that comparing with it would flatter us
  torch                 LibTorch: headers, libtorch_cpu and libc10, without the 0.5 GB of GPU code
  nvidia-cuda-runtime, nvidia-cuda-cupti
                        two libraries that torch's wheel needs to load, also on a machine without a GPU
  onnxruntime           the library with its C API
  ncnn                  for its Python module: nothing else of it can be called
From Debian: OpenCV's dnn.

Exit codes: 2 wrong usage; 3 a Debian package is missing and cannot be installed here; 4 no peer could be fetched from PyPI.
END
}

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/vitro-peers
case ${1:-} in
  --help | -h) usage && exit 0 ;;
  -*) usage >&2 && exit 2 ;;
  ?*) dir=$1 ;;
esac
(($# <= 1)) || { usage >&2 && exit 2; }

# shellcheck source=tools/packages.sh
source "$root/tools/packages.sh"
need_command python3 python3
python3 -m pip --version > /dev/null 2>&1 || missing_packages+=(python3-pip)
need_package libopencv-dnn-dev
install_missing_packages "to compare with other libraries"

mkdir -p "$dir"
dir=$(CDPATH='' cd -- "$dir" && pwd)
fetched=()
failed=()

# fetch NAME PREFIX PACKAGE...: takes the files of the packages' wheels that start with PREFIX (an extended regular expression,
# which is cut off) into DIR/NAME. Only when all is there does the folder get its name.
fetch() {
  local name=$1 prefix=$2
  shift 2
  if [[ -d $dir/$name ]]; then
    fetched+=("$name")
    return
  fi
  echo "$name: fetching $*"
  rm -rf "$dir/.$name" "$dir/.wheels"
  mkdir -p "$dir/.$name" "$dir/.wheels"
  # --no-deps: what these packages ask for is for their use from Python.
  if python3 -m pip download --quiet --no-deps --dest "$dir/.wheels" "$@" &&
    python3 - "$dir/.wheels" "$dir/.$name" "$prefix" << 'END'
import pathlib, re, sys, zipfile
wheels, target, prefix = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), re.compile(sys.argv[3])
taken = 0
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            match = prefix.match(item.filename)
            if match is None or item.is_dir():
                continue
            path = target / item.filename[match.end():]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(item))
            taken += 1
    (target / "wheels.txt").open("a").write(wheel.name + "\n")
sys.exit(0 if taken else f"{prefix.pattern}: no such files in {[w.name for w in wheels.glob('*.whl')]}")
END
  then
    mv "$dir/.$name" "$dir/$name"
    fetched+=("$name")
  else
    failed+=("$name")
  fi
  rm -rf "$dir/.$name" "$dir/.wheels"
}

fetch openblas 'scipy_openblas32/(?=include/|lib/libscipy_openblas)' scipy-openblas32
fetch mkl '[^/]*\.data/data/(?=include/|lib/libmkl_(rt|core|intel_lp64|sequential|gnu_thread|def|avx2|avx512)\.so)' mkl mkl-include
fetch onednn 'paddle/libs/(?=libdnnl)|[^/]*\.data/data/(?=include/)' paddlepaddle onednn-devel-cpu-gomp
fetch torch 'torch/(?=include/|lib/lib(torch_cpu|c10|gomp)[.-])' torch
# Where torch's libraries look for them: beside the folder of the package.
fetch nvidia 'nvidia/(?=cu[0-9]+/lib/lib(cudart|cupti)\.so)' nvidia-cuda-runtime nvidia-cuda-cupti
fetch onnxruntime 'onnxruntime/capi/(?=libonnxruntime\.so)' onnxruntime
fetch ncnn '(?=ncnn/ncnn\.|ncnn/__init__\.py|ncnn\.libs/)' ncnn
# A loader looks for the name without the minor version.
for library in "$dir"/onnxruntime/libonnxruntime.so.*.*; do
  [[ ! -e $library ]] || ln -sf "$(basename "$library")" "$dir/onnxruntime/libonnxruntime.so.1"
done

for name in "${fetched[@]}"; do printf '%s: %s\n' "$name" "$(paste -sd' ' "$dir/$name/wheels.txt")"; done
for name in "${failed[@]}"; do echo "$name: could not be fetched; the table will do without it" >&2; done
((${#fetched[@]})) || exit 4
printf 'To build: cmake --preset release -D VITRO_BUILD_BENCH=ON -D VITRO_BUILD_PEERS=ON -D VITRO_PEERS_DIR=%q\n' "$dir"
