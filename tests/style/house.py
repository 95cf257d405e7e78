# SPDX-License-Identifier: Apache-2.0
"""What the style checks share: which files belong to the project, and how a check reports."""
import pathlib
import sys

# Each room, and the rooms whose headers it may include.
ROOMS = {
    "core": {"core"},
    "simd": {"simd"},
    "ops": {"ops", "core", "simd"},
    "data": {"data", "core"},
    "autograd": {"autograd", "ops", "core", "simd"},
    "models": {"models", "autograd", "ops", "core", "simd", "data"},
    "cuda": {"cuda", "autograd", "ops", "core"},
}
CPP = {".hpp", ".cpp", ".inl", ".cu", ".cuh"}
TEXT = CPP | {".py", ".sh", ".cmake", ".txt", ".md", ".in", ".json", ".yml", ""}
# Not sources: what a user downloads (ignored by git), and files that are wrong on purpose.
NOT_SOURCES = {"data/mnist", "data/fashion-mnist", "tests/fuzz/corpus"}


def project_files(root, suffixes):
    """Paths, relative to root and sorted, of the project's files with one of the suffixes ("" for none)."""
    root = pathlib.Path(root)
    for folder in sorted(p for p in root.iterdir()):
        if folder.name == ".git" or folder.name.startswith("build"):
            continue
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            relative = path.relative_to(root)
            if any(relative.is_relative_to(g) for g in NOT_SOURCES) or "__pycache__" in relative.parts:
                continue
            if path.is_file() and path.suffix in suffixes:
                yield relative


def library_files(root, suffixes=frozenset(CPP)):
    """The same for the library alone: the rooms, without programs, tests and benchmarks."""
    return (p for p in project_files(root, suffixes) if p.parts[0] in ROOMS)


def report(findings, checked):
    """Prints the findings; exit code 1 if there is one, or if nothing was checked."""
    for finding in findings:
        print(finding)
    print(f"{checked} checked, {len(findings)} found wrong")
    sys.exit(1 if findings or not checked else 0)
