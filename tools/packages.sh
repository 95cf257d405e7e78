# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that build Vitro: finds out which Debian packages are missing and installs them, or says how to.
# shellcheck shell=bash

missing_packages=()

# need_command COMMAND PACKAGE: the package is missing if no such command is found.
need_command() {
  command -v "$1" > /dev/null || missing_packages+=("$2")
}

# need_package PACKAGE: only dpkg can tell; elsewhere CMake will.
need_package() {
  command -v dpkg-query > /dev/null || return 0
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2> /dev/null) == installed ]] || missing_packages+=("$1")
}

# need_header HEADER PACKAGE: a header can be there without its package (CPATH, another distribution), so the compiler is asked; where
# there is none yet, dpkg.
need_header() {
  if command -v "${CXX:-c++}" > /dev/null; then
    echo "#include <$1>" | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2> /dev/null || missing_packages+=("$2")
  else
    need_package "$2"
  fi
}

# install_missing_packages REASON: returns at once if nothing is missing; exits with 3 where it may not install.
install_missing_packages() {
  ((${#missing_packages[@]})) || return 0
  echo "Missing packages, needed $1: ${missing_packages[*]}"
  local become_root=()
  if ! command -v apt-get > /dev/null; then
    echo "This system has no apt-get: please install what corresponds to them, then run this again." >&2
    exit 3
  elif ((EUID != 0)); then
    # Without a terminal nobody could type a password.
    if command -v sudo > /dev/null && { [[ -t 0 ]] || sudo -n true 2> /dev/null; }; then
      become_root=(sudo)
    else
      echo "They cannot be installed without root. Please run this as root, then try again:" >&2
      echo "  apt-get update && apt-get install ${missing_packages[*]}" >&2
      exit 3
    fi
  fi
  echo "Installing them with ${become_root:+sudo }apt-get."
  local apt=("${become_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  local install=("${apt[@]}" install --yes --no-install-recommends "${missing_packages[@]}")
  # A fresh machine has no package lists, and a list that is old names versions that are gone.
  if ! "${install[@]}" > /dev/null 2>&1; then
    "${apt[@]}" update
    if ! "${install[@]}"; then
      echo "apt-get could not install them; its messages are above." >&2
      exit 3
    fi
  fi
  missing_packages=()
}
