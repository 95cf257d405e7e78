# SPDX-License-Identifier: Apache-2.0
"""check_source.py RULE ROOT: what can be told from the text of the sources. One function per rule, each of them a test."""
import pathlib
import posixpath
import re
import sys

from house import CPP, ROOMS, TEXT, library_files, project_files, report

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


def includes(root):
    """Includes run down or stay in their room, are written relative to the including file, and name a file that exists."""
    for path in library_files(root):
        room = path.parts[0]
        for bracket, name in INCLUDE.findall(read(root, path)):
            if bracket == "<":
                if name.split("/")[0] in [*ROOMS, "vitro"]:
                    yield path, f"include <{name}> with quotes and a relative path"
                continue
            target = posixpath.normpath((path.parent / name).as_posix())
            if not (root / target).is_file():
                yield path, f'"{name}" is not there'
            elif target.split("/")[0] not in ROOMS[room]:
                yield path, f'"{name}": {room} may include {", ".join(sorted(ROOMS[room]))} only'


def length(root):
    """No source or script is longer than 500 lines."""
    for path in project_files(root, CPP | {".py", ".sh", ".cmake", ".txt"}):
        lines = read(root, path).count("\n")
        if lines > 500:
            yield path, f"{lines} lines; split it by meaning"


def first_lines(root):
    """Line one is the SPDX line (line two after a #!), and then comes one sentence that says what the file is for."""
    for path in project_files(root, CPP | {".py", ".sh"}):
        lines = read(root, path).split("\n")
        if lines[0].startswith("#!"):
            lines = lines[1:]
        comment = "// " if path.suffix in CPP else "# "
        purpose = '"""' if path.suffix == ".py" else comment
        if lines[0] != comment + "SPDX-License-Identifier: Apache-2.0":
            yield path, "the SPDX line is missing"
        elif not re.match(purpose + "[A-Za-z]", lines[1] if len(lines) > 1 else ""):
            yield path, "the sentence that says what the file is for is missing"


def leftovers(root):
    """Nothing unfinished or switched off."""
    pattern = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X])\b|^\s*#\s*if\s+(0|false)\b", re.MULTILINE)
    for path in project_files(root, TEXT):
        for match in pattern.finditer(read(root, path)):
            yield path, f"'{match.group().strip()}'"


def paths(root):
    """No path of the machine that something was written on."""
    pattern = re.compile(r"(?<![\w.$}/~*-])/(work|home|root|Users)/\w+")
    for path in project_files(root, TEXT):
        for match in pattern.finditer(read(root, path)):
            yield path, f"'{match.group()}'"


def numerics(root):
    """The library computes with its own functions, and from the C library with fma, sqrt, floor and trunc alone."""
    functions = (
        "exp exp2 expm1 log log2 log10 log1p pow sin cos tan sinh cosh tanh asin acos atan atan2 erf erfc cbrt hypot lgamma tgamma "
        "fmin fmax fmod remainder fdim ceil round lround llround rint lrint nearbyint logb ilogb ldexp scalbn frexp modf"
    ).replace(" ", "|")
    pattern = re.compile(rf"(std::|__builtin_)({functions})[fl]?\(|std::(shuffle|accumulate|reduce|inner_product)\b|<random>")
    for path in library_files(root):
        for match in pattern.finditer(read(root, path)):
            yield path, f"'{match.group()}' may give other bits elsewhere"


if __name__ == "__main__":
    rule, top = globals()[sys.argv[1]], pathlib.Path(sys.argv[2])
    report([f"{path}: {what}" for path, what in rule(top)], sum(1 for _ in project_files(top, TEXT)))
