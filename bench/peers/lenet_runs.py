#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole runs of lenet_train and of libtorch_lenet, its equal, in alternation: wall time from start to exit, one thread.

Writes JSON of the form that peers_bench writes, for table.py."""
import argparse
import datetime
import json
import math
import os
import pathlib
import subprocess
import time


def run(command):
    """Wall seconds, processor seconds, last line printed."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with exit code {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, output.strip().split("\n")[-1]


def entry(peer, runs):
    seconds = sorted(r[0] for r in runs)
    ranks = {name: seconds[math.ceil(share * len(seconds)) - 1] for name, share in (("p50", 0.5), ("p98", 0.98), ("p99.9", 0.999))}
    shares = [r[1] / r[0] for r in runs]
    return {"peer": peer, "threads": 1, "samples": len(runs), **ranks, "max": seconds[-1],
            "processor_share": sum(shares) / len(shares), "agrees": True}


def processor_name():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(": ", 1)[1].strip()
    return "unknown processor"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("data", help="MNIST's folder")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="writes the figures there")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    commands = {  # the recipe without random shifts, which the other program has not
        "vitro": [options.build / "tools/lenet_train", "--data", options.data, "--recipe", "seed", "--quiet", "--epochs",
                  str(options.epochs)],
        "libtorch": [options.build / "bench/peers/libtorch_lenet", options.data, str(options.epochs)],
    }
    runs = {name: [] for name in commands}
    for round_number in range(options.rounds):
        for name in list(commands) if round_number % 2 == 0 else reversed(commands):
            runs[name].append(run(commands[name]))
            seconds, processor, last = runs[name][-1]
            print(f"{name}: {seconds:.2f} s, of it {processor:.2f} s of processor time; {last}", flush=True)
    entries = [entry(name, runs[name]) for name in commands]
    print(f"ratio of the medians: {entries[1]['p50'] / entries[0]['p50']:.2f}, over 1 where vitro is faster")
    if options.json:
        row = {"group": "LeNet-5 training, the whole program", "flops": 0, "peak": 0, "entries": entries,
               "name": f"{options.epochs} epochs of MNIST, batch 64, reading and evaluation included"}
        now = datetime.datetime.now(datetime.timezone.utc)
        figures = {"processor": processor_name(), "date": now.strftime("%Y-%m-%d %H:%M UTC"), "threads": 1, "clock": "wall",
                   "versions": {}, "missing": [], "rows": [row]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


main()
