# SPDX-License-Identifier: Apache-2.0
"""stack_bound.py PROGRAM ROOT...: an upper bound of the stack that a call of ROOT uses, from GCC's -fcallgraph-info=su.

PROGRAM is an executable in the build folder that holds the .ci files; ROOT is a regular expression that names one function of it.
The bound is the sum of the frames along the deepest chain of calls:
- A direct call goes where GCC says.
- A call through a pointer (a kernel, a plan step, a variant's alternative) may go to any function of the
  program that nobody calls directly.
  At most --indirect of them are nested, e.g.: record a node, bind it, run its step, one part of a parallel loop, one kernel.
  With --only, those that match it are the ones that can be called that way below ROOT.
- Functions that call each other in a circle (the JSON reader's, a JSON value's destructor) count --recursion times: the
  reader's limit of nesting.
- Functions without a known frame (the C and C++ libraries') count as --library bytes, once, at the end of the chain.
- vitro::fail() ends a chain: what the application's failure handler does is the application's to count.
A frame whose size the compiler calls dynamic and unbounded is an error."""
import argparse
import functools
import pathlib
import re
import subprocess
import sys

NODE = re.compile(r'node: \{ title: "([^"]*)" label: "([^"]*)"')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')
INDIRECT = "__indirect_call"


def read_graph(build, program):
    """Frame sizes, readable names and calls of the functions that the linker has left in the program."""
    symbols = subprocess.run(["nm", program], text=True, capture_output=True, check=True).stdout
    linked = {line.split()[-1] for line in symbols.splitlines()}
    frames, names, calls = {}, {}, {}
    for path in build.rglob("*.ci"):
        text = path.read_text()
        for title, label in NODE.findall(text):
            if title.split(":")[-1] not in linked:
                continue
            parts = label.split("\\n")
            if size := re.search(r"(\d+) bytes \((.*?)\)", label):
                if size.group(2) == "dynamic":
                    sys.exit(f"{parts[0]}: a frame without bound")
                frames[title] = max(frames.get(title, 0), int(size.group(1)))
                names[title] = parts[0]
        for source, target in EDGE.findall(text):
            if source in frames and not names[source].startswith("void vitro::fail("):
                calls.setdefault(source, set()).add(target)
    return frames, names, calls


def circles(calls):
    """Maps each function to the group of functions that call each other in a circle with it (Tarjan), itself alone mostly."""
    index, low, stack, group = {}, {}, [], {}

    def visit(f):
        index[f] = low[f] = len(index)
        stack.append(f)
        for g in calls.get(f, ()):
            if g not in index:
                visit(g)
            if g not in group:
                low[f] = min(low[f], low[g])
        if low[f] == index[f]:
            members = frozenset(stack[stack.index(f) :])
            del stack[stack.index(f) :]
            group.update((g, members) for g in members)

    for f in list(calls):
        if f not in index:
            visit(f)
    return group


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("roots", nargs="+")
    parser.add_argument("--indirect", type=int, default=5)
    parser.add_argument("--only", default="", help="a regular expression of names")
    parser.add_argument("--recursion", type=int, default=64)
    parser.add_argument("--library", type=int, default=2048)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    sys.setrecursionlimit(100000)

    build = next((p for p in args.program.resolve().parents if (p / "CMakeCache.txt").is_file()), args.program.parent)
    frames, names, calls = read_graph(build, args.program)
    if not frames:
        sys.exit(f"no .ci files below {build}: compile with -fcallgraph-info=su")
    group = circles({f: targets - {INDIRECT} for f, targets in calls.items()})
    called = set().union(*calls.values())
    pointed_at = sorted(f for f in set(frames) - called - {"main"} if re.search(args.only, names[f]))

    @functools.cache
    def deepest(function, indirect):
        """(bytes, chain of function names) of the deepest chain that starts in function."""
        if function not in frames:
            return args.library, ("(library)",)
        members = group.get(function, frozenset([function]))
        circle = len(members) > 1 or function in calls.get(function, ())
        own = sum(frames.get(f, 0) for f in members) * (args.recursion if circle else 1)
        below = (0, ())
        for target in sorted(set().union(*(calls.get(f, set()) for f in members)) - members):
            if target != INDIRECT:
                below = max(below, deepest(target, indirect))
            elif indirect > 0:
                below = max([below] + [deepest(f, indirect - 1) for f in pointed_at])
        label = f"{names[function]} {own}" + (f" ({len(members)} in a circle, {args.recursion} times)" if circle else "")
        return own + below[0], (label, *below[1])

    for root in args.roots:
        found = [f for f in frames if re.search(root, names[f])]
        if len(found) != 1:
            sys.exit(f"{root} names {len(found)} functions: {[names[f] for f in found]}")
        total, chain = deepest(found[0], args.indirect)
        print(f"{names[found[0]]}: at most {total} bytes")
        if args.verbose:
            print("".join(f"    {step}\n" for step in chain), end="")


main()
