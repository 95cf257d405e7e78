#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the JSON of peers_bench and lenet_runs.py into Markdown, and puts it between the marker comments of a file.

usage: table.py FILE.json... [--into README.md]

Of a file of more than one thread only the figures of all its threads are shown, since another file has those of one.
The markers are <!-- peers: begin --> and <!-- peers: end -->; what stands between them is replaced. Without --into the Markdown
is printed."""
import argparse
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from markdown import replace_between, time_text


def ours(row, threads):
    return next((e for e in row["entries"] if e["peer"] == "vitro" and e["threads"] == threads), None)


def peers(row, threads):
    return [e for e in row["entries"] if e["peer"] != "vitro" and e["threads"] == threads]


def best_ratio(row, threads):
    """p50 of the fastest peer whose result agrees, over ours; None without one."""
    times = [e["p50"] for e in peers(row, threads) if e["agrees"]]
    mine = ours(row, threads)
    return min(times) / mine["p50"] if times and mine else None


def groups(rows):
    """[(name, rows)] in order of appearance."""
    result = {}
    for row in rows:
        result.setdefault(row["group"], []).append(row)
    return list(result.items())


def mean(ratios):
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def by_peer(rows, threads):
    """Each peer's geometric mean and smallest ratio, and over how many rows where it lacks some."""
    ratios = {}
    for row in rows:
        mine = ours(row, threads)
        for e in peers(row, threads):
            if mine and e["agrees"]:
                ratios.setdefault(e["peer"], []).append(e["p50"] / mine["p50"])
    for peer, values in ratios.items():
        count = f" over {len(values)}" if len(values) < len(rows) else ""
        yield f"{peer} {mean(values):.2f} ({min(values):.2f}){count}"


def summary(rows, threads):
    """One line for each group of rows."""
    yield "| | rows | ratio to the best peer: geometric mean | smallest | where | to each peer: geometric mean (smallest) |"
    yield "|---|---|---|---|---|---|"
    for name, members in groups(rows):
        ratios = [(ratio, row["name"]) for row in members if (ratio := best_ratio(row, threads)) is not None]
        if ratios:
            smallest, where = min(ratios)
            yield (f"| {name} | {len(ratios)} | {mean([ratio for ratio, _ in ratios]):.2f} | {smallest:.2f} | {where} "
                   f"| {', '.join(by_peer(members, threads))} |")


def details(rows, threads):
    """One table for each group: our distribution, then each peer's median and its ratio."""
    for name, members in groups(rows):
        columns = list(dict.fromkeys(e["peer"] for row in members for e in peers(row, threads)))
        if not columns:
            continue
        yield ""
        head = ["p50", "p98", "p99.9", "max", "of peak"] + (["one thread / this", "peak"] if threads > 1 else [])
        yield f"| {name} | " + " | ".join(head + [f"{c} p50, ratio" for c in columns]) + " |"
        yield "|---|" + "---|" * (len(head) + len(columns))
        for row in members:
            mine = ours(row, threads)
            cells = [time_text(mine[key]) for key in ("p50", "p98", "p99.9", "max")]
            peak = row["peak_together"] if threads > 1 else row["peak"]
            cells.append(f"{row['flops'] / mine['p50'] * 1e-9 / peak:.2f}" if peak and row["flops"] else "")
            if threads > 1:
                cells.append(f"{ours(row, 1)['p50'] / mine['p50']:.2f}")
                cells.append(f"{row['peak_together'] / row['peak']:.2f}" if row["peak"] else "")
            for column in columns:
                entry = next((e for e in peers(row, threads) if e["peer"] == column), None)
                if entry is None:
                    cells.append("")
                elif not entry["agrees"]:
                    cells.append("wrong result")
                else:
                    cells.append(f"{time_text(entry['p50'])}, {entry['p50'] / mine['p50']:.2f}")
            yield f"| {row['name']} | " + " | ".join(cells) + " |"


def markdown(files):
    """All lines."""
    for figures in files:
        compiler = f", {figures['compiler']}" if "compiler" in figures else ""
        clock = "wall time" if figures["clock"] == "wall" else "processor time"
        yield f"{figures['processor']}{compiler}, {figures['date']}; {clock}, nothing trimmed, caches warm."
        if figures["versions"]:
            yield " ".join(f"{name}: {version}." for name, version in figures["versions"].items())
        if figures["missing"]:
            yield "Not compared: " + ", ".join(m.split(":")[0] for m in figures["missing"]) + "."
        threads = figures["threads"]
        yield ""
        yield f"**{'One thread' if threads == 1 else f'{threads} threads'}**: p50 of the peer / p50 of Vitro, over 1 where Vitro is faster."
        if threads > 1:
            yield (f"Of every row, also the time of one thread over that of {threads}, and beside it the FMA peak of {threads} threads "
                   "at once over that of one: what the machine's processors were worth together just then.")
        yield ""
        yield from summary(figures["rows"], threads)
        yield ""
        yield "<details><summary>Every row</summary>"
        yield from details(figures["rows"], threads)
        yield ""
        yield "</details>"
        yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", nargs="+", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path)
    options = parser.parse_args()
    text = "\n".join(markdown([json.loads(path.read_text()) for path in options.json])).strip() + "\n"
    if options.into is None:
        sys.stdout.write(text)
    else:
        replace_between(options.into, "peers", text)


main()
