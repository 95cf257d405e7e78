#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two sides' benchmark runs: compare_runs.py DIR TRY [--limit 1.10] [--slower FILE].

DIR holds Google Benchmark's JSON, TRY-ROUND-SIDE-PROGRAM.json with SIDE base or new. Prints the rows whose median ratio over the
rounds (new / base, processor time) is over the limit, and how all ratios are distributed; the ratio of both sides' best rounds must
be over it, too, because neighbours on the machine can slow most rounds of one side, but hardly all. FILE takes a regular expression
of those rows.
Exit codes: 0 none is over the limit, 1 some are, 2 usage or no rows in common.
"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import sys


def read(folder, attempt):
    """{side: {row: [nanoseconds]}}"""
    times = {"base": collections.defaultdict(list), "new": collections.defaultdict(list)}
    scale = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    for path in sorted(folder.glob(f"{attempt}-*.json")):
        text = path.read_text()
        if not text.strip():
            continue  # no row of that program matched
        side = path.name.split("-")[2]
        for row in json.loads(text)["benchmarks"]:
            times[side][row["name"]].append(row["cpu_time"] * scale[row["time_unit"]])
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("attempt", metavar="try")
    parser.add_argument("--limit", type=float, default=1.10)
    parser.add_argument("--slower", type=pathlib.Path)
    args = parser.parse_args()
    times = read(args.folder, args.attempt)
    rows = [name for name in times["new"] if name in times["base"]]
    if not rows:
        print("The two sides have no row in common.", file=sys.stderr)
        return 2
    # Runs of one round are neighbours in time: what slows the whole machine for a while slows both.
    ratios = {name: statistics.median(new / base for new, base in zip(times["new"][name], times["base"][name])) for name in rows}
    best = {name: min(times["new"][name]) / min(times["base"][name]) for name in rows}
    ordered = sorted(ratios.values())
    at = lambda share: ordered[min(int(share * len(ordered)), len(ordered) - 1)]
    print(f"  {len(rows)} rows, {len(times['new'].keys() ^ times['base'].keys())} on one side only; new / base: "
          f"min {ordered[0]:.2f}, p10 {at(0.1):.2f}, p50 {at(0.5):.2f}, p90 {at(0.9):.2f}, max {ordered[-1]:.2f}")
    slower = sorted((name for name in rows if min(ratios[name], best[name]) > args.limit), key=lambda name: -ratios[name])
    for name in slower:
        print(f"  {ratios[name]:.2f} (best rounds {best[name]:.2f}) {name}: {statistics.median(times['base'][name]) / 1e3:.2f} -> "
              f"{statistics.median(times['new'][name]) / 1e3:.2f} us")
    if args.slower:
        args.slower.write_text("^(" + "|".join(re.sub(r"([][.{}()*+?^$|\\])", r"\\\1", name) for name in slower) + ")$")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
