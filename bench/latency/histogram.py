#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the JSON of latency_bench as SVG: histogram.py FILE.json OUT.svg.

One panel for each workload. Across: time, logarithmic, from the fastest step to the slowest, so that nothing is cut off. Up: steps in each
of 25 bins a decade, logarithmic too, because the tail is a few steps in many thousands. Each runner has a colour, a line at the top from
its p50 to its p99.9, and a dot at its slowest step."""
import argparse
import collections
import html
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from markdown import time_text

COLOURS = ["#0b6e4f", "#e08214", "#1f78b4", "#b2182b", "#6a3d9a", "#666666"]
WIDTH, LEFT, RIGHT, PLOT = 960, 64, 16, 170  # pixels: whole, margins, height of the bars
PER_DECADE = 25


def coarse(entry, fine):
    """{bin of PER_DECADE: steps}"""
    bins = collections.Counter()
    for number, count in entry["histogram"]:
        bins[number * PER_DECADE // fine] += count
    return bins


def text(x, y, content, size=12, anchor="start", colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{html.escape(content)}</text>'


def outline(bins, x_of, y_of):
    """The bars' upper edge, as one path."""
    points = []
    for number in range(min(bins), max(bins) + 1):
        y = y_of(bins.get(number, 0))
        points += [(x_of(number / PER_DECADE), y), (x_of((number + 1) / PER_DECADE), y)]
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in [(points[0][0], y_of(0)), *points, (points[-1][0], y_of(0))])


def panel(workload, fine, colour_of, top):
    entries = workload["entries"]
    low = math.log10(min(e["min"] for e in entries) * 1e6) - 0.05
    high = math.log10(max(e["max"] for e in entries) * 1e6) + 0.05
    highest = max(max(coarse(e, fine).values()) for e in entries)
    base = top + 48 + 9 * len(entries) + PLOT
    x_of = lambda decades: LEFT + (decades - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    y_of = lambda count: base - (math.log10(count) + 0.3 if count else 0) / (math.log10(highest) + 0.3) * PLOT
    yield text(LEFT, top + 18, f"{workload['name']}: {entries[0]['samples']} steps each", 15)
    for decade in range(math.floor(low), math.ceil(high) + 1):
        for digit in range(1, 10):
            x = x_of(decade + math.log10(digit))
            if LEFT <= x <= WIDTH - RIGHT:
                yield f'<line x1="{x:.1f}" y1="{base - PLOT}" x2="{x:.1f}" y2="{base}" stroke="{"#bbb" if digit == 1 else "#eee"}"/>'
                if digit in (1, 2, 5):
                    yield text(x, base + 15, time_text(digit * 10.0**decade * 1e-6), 11, "middle")
    for power in range(math.floor(math.log10(highest)) + 1):
        yield text(LEFT - 6, y_of(10**power) + 4, f"{10**power}", 11, "end")
    for number, entry in enumerate(entries):
        colour, y = colour_of[entry["runner"]], top + 34 + 9 * number
        x = [x_of(math.log10(entry[key] * 1e6)) for key in ("p50", "p99.9", "max")]
        yield f'<path d="{outline(coarse(entry, fine), x_of, y_of)}" fill="{colour}" fill-opacity="0.12" stroke="{colour}" stroke-width="1.5"/>'
        yield f'<line x1="{x[0]:.1f}" y1="{y}" x2="{x[1]:.1f}" y2="{y}" stroke="{colour}" stroke-width="4"/>'
        yield f'<circle cx="{x[2]:.1f}" cy="{y}" r="3" fill="{colour}"/>'
    column = (WIDTH - LEFT - RIGHT) / 2
    for number, entry in enumerate(entries):
        x, y = LEFT + number % 2 * column, base + 36 + number // 2 * 17
        yield f'<rect x="{x:.1f}" y="{y - 9}" width="10" height="10" fill="{colour_of[entry["runner"]]}"/>'
        times = ", ".join(f"{key} {time_text(entry[key])}" for key in ("p50", "p99.9", "max"))
        yield text(x + 15, y, f"{entry['runner']}: {times}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", type=pathlib.Path)
    parser.add_argument("svg", type=pathlib.Path)
    options = parser.parse_args()
    figures = json.loads(options.json.read_text())
    runners = dict.fromkeys(e["runner"] for workload in figures["workloads"] for e in workload["entries"])
    colour_of = {runner: COLOURS[number % len(COLOURS)] for number, runner in enumerate(runners)}
    lines, top = [], 30
    for workload in figures["workloads"]:
        lines += panel(workload, figures["bins_per_decade"], colour_of, top)
        top += PLOT + 105 + 18 * len(workload["entries"])
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    head = f"{figures['processor']}, {figures['date']}; Vitro {figures['kernels']}, {figures['compiler']}; {versions}"
    lines.append(text(LEFT, 18, head.rstrip("; "), 12, colour="#555"))
    options.svg.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{top}" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")


main()
