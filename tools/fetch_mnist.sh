#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Downloads MNIST's four files into a folder, checks them, and takes up an interrupted download where it stopped.
#
# usage: tools/fetch_mnist.sh DIR
#
# A file appears under its final name only after the SHA-256 of its decompressed bytes agreed with data/mnist.sha256; until then
# it is NAME.gz.part. A file that is already there and right is left alone. Needs curl, wget or python3; gzip; sha256sum.
#
# Exit codes: 0 all four files are there and right; 2 wrong usage; 3 a program is missing; 4 no mirror delivered a file; 5 what
# the mirrors delivered was not the right file; 6 the folder cannot be written to, or another download into it is running.
#
# Environment (the defaults are for people; tests set them):
#   VITRO_MNIST_MIRRORS   base addresses, separated by spaces, tried in this order
#   VITRO_MNIST_SHA256    the list of sums; another one makes this script fetch another data set of the same form
#   VITRO_FETCH_TOOL      curl, wget or python3, instead of the first that is installed
#   VITRO_FETCH_CONNECT   seconds until a connection must stand (10)
#   VITRO_FETCH_STALL     seconds without progress after which a download is given up (20)
#   VITRO_FETCH_TOTAL     seconds that one file may take from one mirror (300)
set -eu

say() { printf 'fetch_mnist: %s\n' "$*" >&2; }
die() {
  code=$1
  shift
  say "$*"
  exit "$code"
}
have() { command -v "$1" >/dev/null 2>&1; }

case ${1-} in
  -h | --help)
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
if [ $# -ne 1 ] || [ -z "$1" ]; then die 2 'usage: tools/fetch_mnist.sh DIR'; fi
case $1 in
  -*) die 2 "unknown option $1; usage: tools/fetch_mnist.sh DIR" ;;
esac
folder=$1

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mirrors=${VITRO_MNIST_MIRRORS:-https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist}
sums=${VITRO_MNIST_SHA256:-$here/../data/mnist.sha256}
connect=${VITRO_FETCH_CONNECT:-10}
stall=${VITRO_FETCH_STALL:-20}
total=${VITRO_FETCH_TOTAL:-300}
# The largest file has 9.9 MB, 47 MB decompressed: whatever exceeds these limits is something else.
max_blocks=32768 # of 1024 bytes or 512, as the shell counts
max_unfolded=67108864

tool=${VITRO_FETCH_TOOL:-}
if [ -z "$tool" ]; then
  for tool in curl wget python3 ''; do
    if [ -z "$tool" ]; then die 3 'needs curl, wget or python3 to download; on Debian: apt-get install curl ca-certificates'; fi
    if have "$tool"; then break; fi
  done
fi
for program in "$tool" gzip sha256sum timeout; do
  have "$program" || die 3 "needs $program, which is not installed"
done
[ -r "$sums" ] || die 3 "the list of sums $sums is missing"

# download URL FILE: fetches the rest of the file; all of it if there is no FILE.
download() (
  ulimit -f "$max_blocks"
  case $tool in
    curl)
      progress=--silent
      if [ -t 2 ]; then progress=--progress-bar; fi
      exec timeout --foreground "$total" curl --fail --location "$progress" --show-error --connect-timeout "$connect" \
        --speed-limit 1000 --speed-time "$stall" --continue-at - --output "$2" "$1"
      ;;
    wget)
      exec timeout --foreground "$total" wget --no-verbose --tries=1 --connect-timeout="$connect" --dns-timeout="$connect" \
        --read-timeout="$stall" --continue --output-document="$2" "$1"
      ;;
    python3)
      exec timeout --foreground "$total" python3 -c '
import os, sys, urllib.request
url, path, stall = sys.argv[1], sys.argv[2], float(sys.argv[3])
start = os.path.getsize(path) if os.path.exists(path) else 0
request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
try:
    with urllib.request.urlopen(request, timeout=stall) as reply, open(path, "ab" if reply.status == 206 else "wb") as file:
        expected, got = reply.headers.get("Content-Length"), 0
        while block := reply.read(65536):
            got += file.write(block)
        if expected and got != int(expected):
            sys.exit(f"the connection closed after {got} of {expected} bytes")
except OSError as error:
    sys.exit(str(error))
' "$1" "$2" "$stall"
      ;;
    *) die 3 "VITRO_FETCH_TOOL is $tool; curl, wget and python3 are known" ;;
  esac
)

# is_right NAME FILE: whether FILE is one sound gzip file of the right content.
is_right() {
  [ -s "$2" ] || return 1
  sum=$(gzip -dc <"$2" 2>/dev/null | head -c "$max_unfolded" | sha256sum | cut -d ' ' -f 1)
  # The list says "SUM  NAME"; gzip -t also finds what follows the data.
  grep -q "^$sum [ *]$1\$" "$sums" && gzip -t <"$2" 2>/dev/null
}

size_of() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

# fetch_from MIRROR NAME PART: 0 with the right file in PART, 4 if it did not come, 5 if it came and was not right.
fetch_from() {
  url=${1%/}/$2.gz
  before=$(size_of "$3")
  if [ "$before" -gt 0 ]; then
    say "$2.gz: going on after $before bytes, from $url"
  else
    say "$2.gz: from $url"
  fi
  if download "$url" "$3"; then
    if is_right "$2" "$3"; then return 0; fi
    say "$2.gz: what came is not the right file"
    rm -f "$3"
    [ "$before" -gt 0 ] || return 5
    say "$2.gz: once more from its beginning"
  else
    # No progress where there was a beginning: the mirror may be unable to go on in the middle. The beginning is kept until a
    # whole file is there.
    if [ "$before" -eq 0 ] || [ "$(size_of "$3")" -ne "$before" ]; then return 4; fi
    say "$2.gz: that failed; once more from its beginning"
  fi
  rm -f "$3.new"
  if ! download "$url" "$3.new"; then
    rm -f "$3.new"
    return 4
  fi
  mv -f "$3.new" "$3"
  if is_right "$2" "$3"; then return 0; fi
  say "$2.gz: what came is not the right file"
  rm -f "$3"
  return 5
}

finish() { mv -f "$1" "$2" || die 6 "cannot rename $1 to $2"; }

# fetch NAME: tries the mirrors in turn; the one that delivered comes first for the next file.
fetch() {
  final=$folder/$1.gz
  if is_right "$1" "$final"; then
    say "$1.gz: already there"
    return 0
  fi
  if [ -e "$final" ]; then say "$1.gz: the file that is there is not the right one and will be replaced"; fi
  part=$final.part
  if is_right "$1" "$part"; then
    finish "$part" "$final"
    say "$1.gz: already downloaded, checked"
    return 0
  fi
  worst=4
  for mirror in $mirrors; do
    result=0
    fetch_from "$mirror" "$1" "$part" || result=$?
    if [ "$result" -eq 0 ]; then
      finish "$part" "$final"
      say "$1.gz: complete, checked"
      others=
      for other in $mirrors; do
        if [ "$other" != "$mirror" ]; then others="$others $other"; fi
      done
      mirrors="$mirror$others"
      return 0
    fi
    if [ "$result" -eq 5 ]; then
      worst=5
    else
      say "$1.gz: no whole file came from $mirror"
    fi
  done
  return "$worst"
}

mkdir -p -- "$folder" 2>/dev/null || die 6 "cannot create the folder $folder"
[ -w "$folder" ] || die 6 "cannot write to the folder $folder"
if have flock; then
  exec 9<"$folder"
  flock -n 9 || die 6 "another download into $folder is running"
fi

for name in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
  result=0
  fetch "$name" || result=$?
  case $result in
    0) ;;
    5) die 5 "no mirror delivered the right $name.gz (tried: $mirrors)" ;;
    *) die 4 "could not download $name.gz (tried: $mirrors); what came so far is kept, so run this again to go on" ;;
  esac
done
say "MNIST is complete in $folder"
