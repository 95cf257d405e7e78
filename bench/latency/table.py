#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the JSON of latency_bench into Markdown: table.py FILE.json [--into README.md], between the markers <!-- latency: begin --> and
<!-- latency: end -->; without --into it is printed."""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from markdown import replace_between, time_text


def table(workload):
    """Untrimmed figures, ratios to Vitro's first runner, and what Tukey's fences leave."""
    ours = workload["entries"][0]
    yield (f"| {workload['name']} | p50 | p98 | p99.9 | max | mean | cv | p50 / ours | p99.9 / ours "
           "| fenced: cut | p50 | p99.9 | cv |")
    yield "|---|" + "---|" * 12
    for e in workload["entries"]:
        cells = [time_text(e[key]) for key in ("p50", "p98", "p99.9", "max", "mean")]
        cells += [f"{e['variation']:.3f}", f"{e['p50'] / ours['p50']:.2f}", f"{e['p99.9'] / ours['p99.9']:.2f}"]
        fence = e["fenced"]
        cells += [f"{100 * fence['cut']:.2f} %", time_text(fence["p50"]), time_text(fence["p99.9"]), f"{fence['variation']:.3f}"]
        yield f"| {e['runner']}{' (WRONG: ' + e['wrong'] + ')' if e['wrong'] else ''} | " + " | ".join(cells) + " |"


def markdown(figures):
    """All lines."""
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    yield (f"{figures['processor']}, {figures['compiler']}, {figures['date']}; Vitro on {figures['kernels']}; {versions or 'no other library'}. "
           f"One thread, turns of {figures['block']} steps, each after {figures['warm']} untimed ones.")
    for workload in figures["workloads"]:
        yield ""
        yield from table(workload)
        yield ""
        yield (f"{workload['entries'][0]['samples']} steps each; {100 * workload['processor_share']:.1f} % of the wall time was this "
               f"program's; making a batch, {time_text(workload['assembly_p50'])}, is not in it.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path)
    options = parser.parse_args()
    text = "\n".join(markdown(json.loads(options.json.read_text()))) + "\n"
    if options.into is None:
        sys.stdout.write(text)
    else:
        replace_between(options.into, "latency", text)


main()
