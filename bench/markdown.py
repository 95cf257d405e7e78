# SPDX-License-Identifier: Apache-2.0
"""What the scripts that write figures into README.md share."""
import math


def time_text(seconds):
    """Three digits: 2.71 µs, 41.3 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            value = seconds / scale
            return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"
    raise AssertionError


def replace_between(path, marker, text):
    """Puts text between <!-- MARKER: begin --> and <!-- MARKER: end --> of the file."""
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    document = path.read_text()
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise SystemExit(f"{path}: there must be one {begin} and after it one {end}")
    path.write_text(f"{document.split(begin)[0]}{begin}\n{text.strip()}\n{end}{document.split(end)[1]}")
