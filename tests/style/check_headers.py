# SPDX-License-Identifier: Apache-2.0
"""check_headers.py ROOT COMPILER: each header compiles alone, without -I, with and without exceptions and RTTI.

A header that asks about exceptions is compiled twice. All others are compiled alone in the stricter mode, without, and
then all together with exceptions: whether a header includes what it needs does not depend on the mode."""
import concurrent.futures
import pathlib
import subprocess
import sys

from house import library_files, report

WARNINGS = "-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror".split()
WITHOUT, WITH = ["-fno-exceptions", "-fno-rtti"], []
ISA_FLAGS = {  # what the headers of one instruction set demand, by a part of their name
    "avx512": "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma".split(),
    "avx2": "-mavx2 -mfma".split(),
}


def isa_flags(header):
    return next((flags for isa, flags in ISA_FLAGS.items() if isa in header.name), [])


def compile_headers(compiler, headers, mode):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-ffp-contract=off", *WARNINGS, *isa_flags(headers[0]), *mode]
    # Read from standard input, since a header given as the main file would be warned of.
    source = "".join(f'#include "{header}"\n' for header in headers)
    result = subprocess.run([*command, "-x", "c++", "-"], input=source, text=True, capture_output=True)
    name = headers[0] if len(headers) == 1 else "all headers"
    return f"{name}, {' '.join(mode) or 'with exceptions'}:\n{result.stderr}" if result.returncode else None


root, cxx = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
every = [root / header for header in library_files(root, {".hpp"})]
jobs = [([header], WITHOUT) for header in every]
jobs += [([header], WITH) for header in every if "__cpp_exceptions" in header.read_text() or isa_flags(header)]
jobs += [([header for header in every if not isa_flags(header)], WITH)]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    findings = [finding for finding in pool.map(lambda job: compile_headers(cxx, *job), jobs) if finding]
report(findings, len(jobs))
