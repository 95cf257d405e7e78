# SPDX-License-Identifier: Apache-2.0
"""check_installed_headers.py INCLUDE_DIR CLANG: the public headers stand without the rest, and hold no float arithmetic.

An application compiles them with flags of its own (-ffast-math, -ffp-contract=fast), so arithmetic in them could give other
bits than the library's. Clang's syntax tree shows every operator with its type; exit code 4 (skipped) without Clang."""
import pathlib
import re
import shutil
import subprocess
import sys

from house import report

ARITHMETIC = re.compile(
    r"(BinaryOperator|CompoundAssignOperator|UnaryOperator) 0x\w+ <.*> '(?:const )?(?:float|double|long double)'[^']*?"
    r" (?:postfix |prefix )?'(\+|-|\*|/|\+=|-=|\*=|/=|\+\+|--)'"
)

include_dir, clang = pathlib.Path(sys.argv[1]), sys.argv[2]
if not shutil.which(clang):
    print(f"skipped: {clang} is not here")
    sys.exit(4)
headers = sorted(p.relative_to(include_dir).as_posix() for p in include_dir.rglob("*.hpp"))
source = "".join(f"#include <{header}>\n" for header in headers)
command = [clang, "-std=c++20", f"-I{include_dir}", "-fsyntax-only", "-x", "c++", "-"]
command += "-Xclang -ast-dump -Xclang -ast-dump-filter=vitro -fno-color-diagnostics".split()
result = subprocess.run(command, input=source, text=True, capture_output=True)
if result.returncode:
    report([f"the installed headers do not compile:\n{result.stderr}"], len(headers))
findings, file, function = [], "", ""
for line in result.stdout.splitlines():
    if match := re.search(rf"<{re.escape(str(include_dir))}/([^:>]+):", line):
        file = match.group(1)
    if match := re.search(r"(?:Method|Function|Conversion|Constructor)Decl 0x\w+ .* (\S+) '", line):
        function = match.group(1)
    if match := ARITHMETIC.search(line):
        findings.append(f"{file}: {function}: float '{match.group(2)}'; move it to a source file")
report(sorted(set(findings)), len(headers))
