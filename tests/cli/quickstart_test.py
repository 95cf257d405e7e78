#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/quickstart.sh on machines that lack this or that. The compiler, CMake, apt-get, sudo and lenet_train are stand-ins that
record how they were called; the script, its helpers and the download (from loopback) are the real ones."""
import functools
import gzip
import hashlib
import http.server
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
DEAD = "http://127.0.0.1:1"
REAL_PROGRAMS = (
    "bash cat chmod cut dirname env flock grep gzip head mkdir mv nproc rm sed sh sha256sum sort tail timeout touch tr true wc"
).split()

STAND_INS = {
    "c++": """
if [ "$1" = --version ]; then echo "c++ (stand-in) 12.2.0"; exit; fi
source=$(cat)
case $source in
  *zlib.h*) [ ! -e "$MACHINE/no-zlib" ] ;;
  *CLI11*|*CLI/*) true ;;
  *charconv*) [ ! -e "$MACHINE/old-compiler" ] ;;
esac
""",
    "cmake": """
if [ "$1" = --version ]; then echo "cmake version $(cat "$MACHINE/cmake-version")"; exit; fi
if [ "$1" = --build ]; then
  [ ! -e "$MACHINE/build-fails" ] || exit 1
  mkdir -p "$2/tools" && cp "$MACHINE/lenet_train" "$2/tools/lenet_train"
else
  [ ! -e "$MACHINE/configure-fails" ] || { echo "CMake Error: no reason"; exit 1; }
  touch "$4/CMakeCache.txt"
fi
""",
    "make": "",
    "apt-get": """
[ ! -e "$MACHINE/apt-fails" ] || exit 100
for word in "$@"; do
  case $word in
    cmake) cp "$MACHINE/spare/cmake" "$MACHINE/bin/cmake" ;;
    g++) cp "$MACHINE/spare/c++" "$MACHINE/bin/c++" ;;
    zlib1g-dev) rm -f "$MACHINE/no-zlib" ;;
    curl) cp "$MACHINE/spare/curl" "$MACHINE/bin/curl" ;;
  esac
done
""",
    "sudo": '[ "$1" != -n ] || shift\nexec "$@"\n',
    "lenet_train": 'echo "test accuracy: 0.99"\nexit "$(cat "$MACHINE/train-code")"\n',
}


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.machine = pathlib.Path(tempfile.mkdtemp(prefix="vitro quick start "))
        self.addCleanup(shutil.rmtree, self.machine)
        self.root = self.machine / "the checkout"
        (self.root / "tools").mkdir(parents=True)
        for name in ("quickstart.sh", "packages.sh", "fetch_mnist.sh"):
            shutil.copy(ROOT / "tools" / name, self.root / "tools" / name)
        shutil.copytree(ROOT / "data" / "sample", self.root / "data" / "sample")
        self.bin = self.machine / "bin"
        self.spare = self.machine / "spare"
        for folder in (self.bin, self.spare):
            folder.mkdir()
        for name in REAL_PROGRAMS + ["cp"]:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, body in STAND_INS.items():
            where = self.machine if name == "lenet_train" else self.spare
            # Only calls that do something are recorded, not those that ask for a version.
            record = 'case "$*" in *-version*|*-fsyntax-only*) ;; *) echo "$(basename "$0") $*" >>"$MACHINE/calls" ;; esac\n'
            (where / name).write_text("#!/bin/sh\n" + record + body)
            (where / name).chmod(0o755)
        (self.bin / "basename").symlink_to(shutil.which("basename"))
        for name in ("c++", "cmake", "make", "apt-get"):
            shutil.copy(self.spare / name, self.bin / name)
        (self.spare / "curl").write_text("#!/bin/sh\nexit 7\n")
        (self.spare / "curl").chmod(0o755)
        shutil.copy(self.spare / "curl", self.bin / "curl")
        self.set("cmake-version", "3.25.1")
        self.set("train-code", "0")
        self.other = self.machine / "some data"
        self.make_data(self.other)
        self.open_up()

    def set(self, name, value=""):
        (self.machine / name).write_text(value)

    def make_data(self, folder, suffix=".gz"):
        folder.mkdir(parents=True)
        for name in NAMES:
            (folder / (name + suffix)).write_bytes(gzip.compress(name.encode(), mtime=0))

    def open_up(self):
        """Lets the user nobody use the folder: root may install packages without asking, so the tests do not run as root."""
        if os.geteuid() == 0:
            for folder, _, _ in os.walk(self.machine):
                os.chmod(folder, 0o777)

    def start(self, *arguments, stdin=subprocess.DEVNULL, **settings):
        self.open_up()
        environment = {"PATH": str(self.bin), "MACHINE": str(self.machine), "VITRO_MNIST_MIRRORS": DEAD, "no_proxy": "*"} | settings
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        script = self.root / "tools" / "quickstart.sh"
        return subprocess.run([script, *arguments], env=environment, cwd="/", stdin=stdin, capture_output=True, text=True, timeout=60, **user)

    def run_script(self, *arguments, expect=0, **settings):
        done = self.start(*arguments, **settings)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def calls(self, program):
        record = self.machine / "calls"
        lines = record.read_text().splitlines() if record.exists() else []
        return [line.partition(" ")[2] for line in lines if line.split(" ")[0] == program]

    def test_with_everything_there_it_builds_trains_and_says_what_next(self):
        said = self.run_script("--data", str(self.other))
        model = self.root / "build" / "lenet5"
        self.assertEqual(self.calls("lenet_train"), [f"--data {self.other} --save {model}"])
        self.assertEqual(self.calls("apt-get"), [])
        self.assertIn("test accuracy: 0.99", said)
        self.assertIn("What to try next", said)
        self.assertIn("--eval", said)

    def test_the_first_build_is_release_without_tests_and_the_second_keeps_what_is_there(self):
        self.run_script("--data", str(self.other))
        self.run_script("--data", str(self.other))
        configured = [call for call in self.calls("cmake") if call.startswith("-S")]
        self.assertIn("CMAKE_BUILD_TYPE=Release", configured[0])
        self.assertIn("VITRO_BUILD_TESTS=OFF", configured[0])
        self.assertNotIn("VITRO_BUILD_TESTS", configured[1])

    def test_what_follows_the_two_dashes_goes_to_the_program(self):
        self.run_script("--data", str(self.other), "--", "--epochs", "3", "--save", "here")
        self.assertEqual(self.calls("lenet_train"), [f"--data {self.other} --epochs 3 --save here"])

    def test_the_environment_names_the_data(self):
        self.run_script(VITRO_MNIST_DIR=str(self.other))
        self.assertIn(f"--data {self.other} ", self.calls("lenet_train")[0])

    def test_data_mnist_is_used_where_it_is_there_under_any_name(self):
        self.make_data(self.root / "data" / "mnist", "")
        for name in ("train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
            file = self.root / "data" / "mnist" / name
            file.rename(str(file).replace("-idx", ".idx"))
        self.assertNotIn("fetch_mnist", self.run_script())
        self.assertIn(f"--data {self.root}/data/mnist ", self.calls("lenet_train")[0])

    def test_mnist_is_downloaded_where_it_can_be_had(self):
        curl = shutil.which("curl")
        if not curl:
            self.skipTest("curl is not installed")
        (self.bin / "curl").unlink()
        (self.bin / "curl").symlink_to(curl)
        sums = "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in NAMES)
        (self.root / "data" / "mnist.sha256").write_text(sums)
        handler = functools.partial(QuietFiles, directory=self.other)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            self.run_script(VITRO_MNIST_MIRRORS=f"http://127.0.0.1:{server.server_port}")
            server.shutdown()
        self.assertIn(f"--data {self.root}/data/mnist ", self.calls("lenet_train")[0])
        self.assertEqual(len(list((self.root / "data" / "mnist").glob("*.gz"))), 4)

    def test_without_a_mirror_the_sample_is_used_and_that_is_said_loudly(self):
        (self.root / "data" / "mnist.sha256").write_text("")
        said = self.run_script()
        self.assertIn("SAMPLE", said)
        self.assertIn(f"--data {self.root}/data/sample ", self.calls("lenet_train")[0])

    def test_the_sample_can_be_asked_for_and_then_nothing_is_downloaded(self):
        said = self.run_script("--sample", VITRO_MNIST_DIR=str(self.other))
        self.assertNotIn("fetch_mnist", said)
        self.assertIn(f"--data {self.root}/data/sample ", self.calls("lenet_train")[0])

    def test_a_folder_without_the_files_is_exit_code_13(self):
        (self.other / (NAMES[3] + ".gz")).unlink()
        self.assertIn(str(self.other), self.run_script("--data", str(self.other), expect=13))
        self.assertIn("/nowhere", self.run_script(VITRO_MNIST_DIR="/nowhere", expect=13))

    def test_a_missing_package_without_root_and_sudo_is_exit_code_10_and_says_the_command(self):
        (self.bin / "cmake").unlink()
        self.set("no-zlib")
        said = self.run_script("--sample", expect=10)
        self.assertIn("apt-get install cmake zlib1g-dev", said)
        self.assertEqual(self.calls("apt-get"), [])

    def test_a_missing_package_is_named_and_installed_through_sudo(self):
        for name in ("cmake", "c++", "curl"):
            (self.bin / name).unlink()
        self.set("no-zlib")
        shutil.copy(self.spare / "sudo", self.bin / "sudo")
        (self.root / "data" / "mnist.sha256").write_text("")
        said = self.run_script("--yes")
        self.assertLess(said.index("Missing packages"), said.index("Installing"))
        for package in ("cmake", "g++", "curl", "ca-certificates"):
            self.assertIn(f" {package}", " " + self.calls("apt-get")[0])
        self.assertEqual(len(self.calls("lenet_train")), 1)

    def test_packages_that_cannot_be_installed_are_exit_code_10(self):
        (self.bin / "cmake").unlink()
        shutil.copy(self.spare / "sudo", self.bin / "sudo")
        self.set("apt-fails")
        self.run_script("--sample", expect=10)
        (self.bin / "apt-get").unlink()
        self.assertIn("no apt-get", self.run_script("--sample", expect=10))

    def answer(self, text):
        """Runs the script on a terminal where `text` is typed."""
        ours, theirs = pty.openpty()
        try:
            os.write(ours, text.encode())
            return self.start("--sample", stdin=theirs)
        finally:
            os.close(ours)
            os.close(theirs)

    def test_on_a_terminal_it_asks_first(self):
        (self.bin / "cmake").unlink()
        shutil.copy(self.spare / "sudo", self.bin / "sudo")
        self.assertEqual(self.answer("n\n").returncode, 10)
        self.assertEqual(self.calls("apt-get"), [])
        self.assertEqual(self.answer("\n").returncode, 0)
        self.assertEqual(len(self.calls("lenet_train")), 1)

    def test_old_tools_are_exit_code_11(self):
        self.set("cmake-version", "3.16.3")
        self.assertIn("3.16.3", self.run_script("--sample", expect=11))
        self.set("cmake-version", "3.100.0")
        self.run_script("--sample")
        self.set("old-compiler")
        self.assertIn("GCC 11", self.run_script("--sample", expect=11))

    def test_a_build_that_fails_is_exit_code_12(self):
        self.set("build-fails")
        self.run_script("--sample", expect=12)
        self.set("configure-fails")
        self.assertIn("CMake Error: no reason", self.run_script("--sample", expect=12))

    def test_the_exit_code_of_the_training_is_passed_on(self):
        for code in ("3", "130"):
            self.set("train-code", code)
            self.assertNotIn("What to try next", self.run_script("--sample", expect=int(code)))

    def test_wrong_usage_is_exit_code_2(self):
        for arguments in (["--unknown"], ["--data"], ["--data", ""], ["stray"], ["--data", "a", "--sample"]):
            self.run_script(*arguments, expect=2)
        self.assertIn("usage: tools/quickstart.sh", self.run_script("--help"))
        self.assertEqual(self.calls("cmake"), [])


if __name__ == "__main__":
    unittest.main()
