# SPDX-License-Identifier: Apache-2.0
"""check_symbols.py RULE LIBRARY COMPILER: what the compiled library asks of its surroundings, and what it leaves in memory.

Exit code 4 (skipped) for a library with sanitizers in it, which ask for much more."""
import re
import subprocess
import sys

from house import report

# Everything else in libm may give other bits on another machine or version.
LIBM_ALLOWED = "fma fmaf sqrt sqrtf floor floorf trunc truncf fegetround fegetexcept fegetenv fesetenv feholdexcept feupdateenv fetestexcept"
# The library returns errors; only programs print, exit and read the environment.
FORBIDDEN = {
    "prints": "stdout stderr printf vprintf puts putchar perror dprintf __printf_chk __vprintf_chk std::cout std::cerr std::clog",
    "ends the program": "exit _exit _Exit quick_exit abort raise",
    "reads the environment": "getenv secure_getenv environ std::locale::global setlocale",
    "depends on the locale": "snprintf sprintf __snprintf_chk __sprintf_chk sscanf strtod strtof strtol strtoul isalpha isdigit isspace toupper tolower",
    "is not ours to be random with": "rand srand random drand48 std::random_device",
}
STATE_ALLOWED = {
    "vitro::(anonymous namespace)::failure_handler",  # the only process-wide variable, as core/error.hpp explains
    "vitro::(anonymous namespace)::running",  # per thread, by which the pool knows a loop started from inside a loop
    "std::__detail::__waiter_pool_base::_S_for(void const*)::__w",  # libstdc++'s, who sleeps in std::atomic's wait()
    "DW.ref.__gxx_personality_v0",  # the compiler's, for unwinding
}


def output(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def undefined(library):
    """(object file, demangled symbol) of everything that one object needs from elsewhere."""
    member = ""
    for line in output("nm", "-uC", library).splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif line.strip():
            yield member, line.split(maxsplit=1)[1]


def libm(library, compiler):
    """From libm only the functions that IEEE 754 defines to the last bit."""
    path = output(compiler, "-print-file-name=libm.so.6").strip()
    exported = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", path).splitlines()}
    exported -= {"_init", "_fini"}
    if "expf" not in exported:
        sys.exit(f"{path} does not look like libm")
    allowed = set(LIBM_ALLOWED.split())
    return [f"{member} calls {name} of libm" for member, name in undefined(library) if name in exported - allowed]


def calls(library, _):
    """No printing, no exit, no environment, no locale, no other source of random numbers."""
    reasons = {name: why for why, names in FORBIDDEN.items() for name in names.split()}
    found = []
    for member, name in undefined(library):
        why = reasons.get(re.sub(r"\(.*", "", name).split("[")[0])
        if why:
            found.append(f"{member}: {name} {why}")
    return found


def state(library, _):
    """Nothing runs before main, and no variable outlives a call (const tables are fine)."""
    member, found = "", []
    for line in output("objdump", "-htC", library).splitlines():
        if match := re.match(r"(\S+):\s+file format", line):
            member = match.group(1)
        if re.search(r"\s\.(init_array|ctors|preinit_array)\b", line):
            found.append(f"{member} has a static initialiser ({line.split()[1]})")
        match = re.match(r"\w+ [\w ]{7} (\.t?(?:bss|data)(?!\.rel\.ro)\S*)\s+\w+\s+(?:\.hidden )?(.*)", line)
        if match and match.group(2) not in STATE_ALLOWED and not match.group(2).startswith("."):
            found.append(f"{member} keeps {match.group(2)} in {match.group(1)}")
    return found


if __name__ == "__main__":
    rule, archive, cxx = globals()[sys.argv[1]], sys.argv[2], sys.argv[3]
    needed = list(undefined(archive))
    if any(re.match(r"__(asan|tsan|ubsan|msan)_", name) for _, name in needed):
        print("skipped: the library was built with sanitizers")
        sys.exit(4)
    report(rule(archive, cxx), len(needed))
