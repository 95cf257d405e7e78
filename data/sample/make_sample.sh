#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the sample's four files again from the whole of Fashion-MNIST: the first 6,000 and 1,000 images and labels.
#
# usage: make_sample.sh [SOURCE [TARGET]]
#   SOURCE  the folder with Fashion-MNIST's .gz files; by default where Debian's dataset-fashion-mnist puts them
#   TARGET  the folder to write to; by default this script's
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
source=${1:-/usr/share/datasets/fashion-mnist}
target=${2:-$here}

# big_endian N: as four bytes.
big_endian() {
  for shift in 24 16 8 0; do
    printf '%b' "\\0$(printf '%o' $(($1 >> shift & 255)))"
  done
}

# images NAME COUNT and labels NAME COUNT: a new header, then the first bytes of what follows the old one. gzip -n leaves out name
# and time, so that the same input gives the same file.
images() {
  {
    printf '\0\0\010\003' && big_endian "$2" && big_endian 28 && big_endian 28
    gzip -dc "$source/$1.gz" | tail -c +17 | head -c $(($2 * 28 * 28))
  } | gzip -9n >"$target/$1.gz"
}
labels() {
  {
    printf '\0\0\010\001' && big_endian "$2"
    gzip -dc "$source/$1.gz" | tail -c +9 | head -c "$2"
  } | gzip -9n >"$target/$1.gz"
}

if [ ! -r "$source/train-images-idx3-ubyte.gz" ]; then
  echo "make_sample: no Fashion-MNIST in $source; on Debian: apt-get install dataset-fashion-mnist" >&2
  exit 2
fi
images train-images-idx3-ubyte 6000
labels train-labels-idx1-ubyte 6000
images t10k-images-idx3-ubyte 1000
labels t10k-labels-idx1-ubyte 1000
(cd "$target" && sha256sum -c "$here/SHA256SUMS")
