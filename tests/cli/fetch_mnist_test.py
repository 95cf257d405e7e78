#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/fetch_mnist.sh against mirrors on loopback that are good, dead, slow, cut short or wrong.

usage: fetch_mnist_test.py TOOL, where TOOL (curl, wget or python3) is what the script downloads with. Exit code 77: not installed.
"""
import functools
import gzip
import hashlib
import http.server
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "fetch_mnist.sh"
NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
TOOL = "curl"


class Mirror(http.server.BaseHTTPRequestHandler):
    """The first part of the path is how the mirror behaves, the last the file."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        _, behaviour, name = self.path.split("/")
        self.server.requests.append((behaviour, name, self.headers.get("Range")))
        self.close_connection = True
        getattr(self, behaviour)(self.server.files[name])

    def reply(self, data, length=None, ranges=True):
        start = 0
        wanted = self.headers.get("Range")
        if ranges and wanted:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str((length or len(data)) - start))
        self.end_headers()
        self.wfile.write(data[start:])

    def good(self, data):
        self.reply(data)

    def missing(self, _):
        self.send_error(404)

    def page(self, _):  # a captive portal
        self.reply(b"<html>please log in</html>", ranges=False)

    def corrupt(self, data):  # sound gzip around one wrong byte
        content = bytearray(gzip.decompress(data))
        content[len(content) // 2] ^= 1
        self.reply(gzip.compress(bytes(content), mtime=0))

    def truncated(self, data):  # the server has no more
        self.reply(data[: len(data) // 2])

    def longer(self, data):
        self.reply(data + b"more")

    def bomb(self, _):
        self.reply(self.unfolding(80_000_000))

    @staticmethod
    @functools.cache
    def unfolding(size):
        return gzip.compress(bytes(size), 1)

    def cut(self, data):  # the connection closes in the middle
        self.reply(data[: len(data) * 2 // 3], length=len(data))

    def unresumable(self, data):
        self.reply(data, ranges=False)

    def unresumable_cut(self, data):
        self.reply(data[: len(data) // 3], length=len(data), ranges=False)

    def hanging(self, _):
        self.server.stop.wait(30)

    def stalling(self, data):  # a part, then nothing
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.server.stop.wait(30)

    def dripping(self, data):  # never idle, never done
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            for i in range(1000):
                self.wfile.write(data[i * 100 : i * 100 + 100])
                if self.server.stop.wait(0.05):
                    return
        except OSError:
            pass

    def endless(self, _):
        self.send_response(200)
        self.end_headers()
        try:
            while not self.server.stop.is_set():
                self.wfile.write(bytes(1 << 20))
        except OSError:
            pass


class FetchMnist(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vitro fetch "))
        self.addCleanup(shutil.rmtree, self.folder)
        self.target = self.folder / "mnist"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
        self.server.daemon_threads = True
        self.server.requests = []
        self.server.stop = threading.Event()
        drawn = random.Random(1)
        self.contents = {name: drawn.randbytes(150_000 if "images" in name else 500) for name in NAMES}
        self.server.files = {name + ".gz": gzip.compress(data, mtime=0) for name, data in self.contents.items()}
        self.sums = self.folder / "sums"
        self.sums.write_text("".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in self.contents.items()))
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.stop.set)

    def address(self, behaviour):
        return f"http://127.0.0.1:{self.server.server_port}/{behaviour}"

    def run_script(self, *behaviours, expect, **settings):
        environment = {
            "PATH": os.environ["PATH"],
            "no_proxy": "*",
            "VITRO_MNIST_MIRRORS": " ".join(b if ":" in b else self.address(b) for b in behaviours),
            "VITRO_MNIST_SHA256": str(self.sums),
            "VITRO_FETCH_TOOL": TOOL,
            "VITRO_FETCH_CONNECT": "2",
            "VITRO_FETCH_STALL": "1",
            "VITRO_FETCH_TOTAL": "20",
        } | settings
        done = subprocess.run([SCRIPT, self.target], env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def assert_complete(self):
        for name, data in self.contents.items():
            self.assertEqual(gzip.decompress((self.target / (name + ".gz")).read_bytes()), data)
        self.assertEqual(len(list(self.target.iterdir())), 4, "something was left behind")

    def assert_nothing_final(self):
        self.assertEqual(list(self.target.glob("*.gz")), [])

    def asked(self, behaviour):
        return [(name, wanted) for how, name, wanted in self.server.requests if how == behaviour]

    def test_a_good_mirror_delivers_four_files_and_the_second_run_asks_for_nothing(self):
        self.run_script("good", expect=0)
        self.assert_complete()
        self.assertEqual(len(self.server.requests), 4)
        said = self.run_script("good", expect=0)
        self.assertEqual(len(self.server.requests), 4)
        self.assertEqual(said.count("already there"), 4)

    def test_a_complete_folder_needs_no_mirror(self):
        self.run_script("good", expect=0)
        self.run_script("http://127.0.0.1:1", expect=0)

    def test_a_damaged_file_is_said_and_replaced(self):
        self.run_script("good", expect=0)
        for damage in (b"", b"text", (self.target / (NAMES[0] + ".gz")).read_bytes()[:-1]):
            (self.target / (NAMES[0] + ".gz")).write_bytes(damage)
            said = self.run_script("good", expect=0)
            self.assertIn("not the right one", said)
            self.assert_complete()

    def test_a_dead_mirror_is_passed_over_and_not_asked_again(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            dead = f"http://127.0.0.1:{unused.getsockname()[1]}/dead"
        said = self.run_script(dead, "good", expect=0)
        self.assert_complete()
        self.assertEqual(said.count("/dead/"), 1)

    def test_a_mirror_without_the_file_is_passed_over(self):
        self.run_script("missing", "good", expect=0)
        self.assert_complete()

    def test_wrong_files_are_passed_over(self):
        for behaviour in ("corrupt", "page", "truncated", "longer", "bomb"):
            with self.subTest(behaviour):
                shutil.rmtree(self.target, ignore_errors=True)
                said = self.run_script(behaviour, "good", expect=0)
                self.assertIn("not the right file", said)
                self.assert_complete()

    def test_a_wrong_file_from_every_mirror_is_exit_code_5_and_leaves_nothing(self):
        for behaviours in (["corrupt"], ["corrupt", "page"]):
            self.run_script(*behaviours, expect=5)
            self.assertEqual(list(self.target.iterdir()), [])

    def test_no_file_from_any_mirror_is_exit_code_4(self):
        said = self.run_script("missing", "http://127.0.0.1:1", expect=4)
        self.assertIn("could not download train-images-idx3-ubyte.gz", said)
        self.assert_nothing_final()

    def test_a_file_that_never_ends_is_given_up_for_its_size_and_not_when_its_time_is_over(self):
        began = time.monotonic()
        self.run_script("endless", "good", expect=0, VITRO_FETCH_TOTAL="60")
        self.assertLess(time.monotonic() - began, 40)
        self.assert_complete()

    def test_a_cut_transfer_is_kept_and_taken_up_by_the_next_run(self):
        self.run_script("cut", expect=4)
        self.assert_nothing_final()
        whole = self.server.files[NAMES[0] + ".gz"]
        part = self.target / (NAMES[0] + ".gz.part")
        self.assertEqual(part.read_bytes(), whole[: len(whole) * 2 // 3])
        self.run_script("good", expect=0)
        self.assertEqual(self.asked("good")[0], (NAMES[0] + ".gz", f"bytes={len(whole) * 2 // 3}-"))
        self.assert_complete()

    def test_a_cut_transfer_is_taken_up_by_the_next_mirror(self):
        self.run_script("cut", "good", expect=0)
        self.assertTrue(self.asked("good")[0][1])
        self.assert_complete()

    def test_a_part_of_another_file_is_found_out_and_fetched_anew(self):
        self.target.mkdir()
        (self.target / (NAMES[0] + ".gz.part")).write_bytes(b"another beginning")
        self.run_script("good", expect=0)
        self.assert_complete()

    def test_a_part_that_is_complete_or_too_long_is_handled(self):
        whole = self.server.files[NAMES[0] + ".gz"]
        for beginning, requests in ((whole, 3), (whole + b"more", 5)):
            with self.subTest(len(beginning)):
                shutil.rmtree(self.target, ignore_errors=True)
                self.target.mkdir()
                self.server.requests.clear()
                (self.target / (NAMES[0] + ".gz.part")).write_bytes(beginning)
                self.run_script("good", expect=0)
                self.assert_complete()
                self.assertLessEqual(len(self.server.requests), requests)

    def test_a_mirror_that_cannot_go_on_in_the_middle_starts_anew(self):
        self.run_script("unresumable_cut", "unresumable", expect=0)
        self.assert_complete()

    def test_a_dead_mirror_does_not_cost_the_beginning(self):
        self.run_script("cut", expect=4)
        part = self.target / (NAMES[0] + ".gz.part")
        size = part.stat().st_size
        self.run_script("http://127.0.0.1:1", expect=4)
        self.assertEqual(part.stat().st_size, size)

    def test_hanging_mirrors_are_given_up(self):
        for behaviour in ("hanging", "stalling"):
            with self.subTest(behaviour):
                shutil.rmtree(self.target, ignore_errors=True)
                began = time.monotonic()
                self.run_script(behaviour, "good", expect=0)
                self.assertLess(time.monotonic() - began, 15)
                self.assert_complete()

    def test_a_dripping_mirror_is_given_up_when_its_time_is_over(self):
        began = time.monotonic()
        self.run_script("dripping", "good", expect=0, VITRO_FETCH_TOTAL="2")
        self.assertLess(time.monotonic() - began, 15)
        self.assert_complete()

    def test_a_folder_that_cannot_be_made_is_exit_code_6(self):
        self.target.write_bytes(b"a file")
        self.run_script("good", expect=6)

    def test_two_downloads_into_one_folder_do_not_meet(self):
        self.target.mkdir()
        with subprocess.Popen(["flock", "--no-fork", self.target, "sleep", "30"]) as holder:
            time.sleep(0.3)
            said = self.run_script("good", expect=6)
            holder.kill()
        self.assertIn("another download", said)

    def test_missing_programs_are_exit_code_3(self):
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("sh", "dirname", "sed"):
            (programs / name).symlink_to(shutil.which(name))
        said = self.run_script("good", expect=3, PATH=str(programs), VITRO_FETCH_TOOL="")
        self.assertIn("apt-get install curl", said)
        (programs / "curl").symlink_to("/bin/false")
        self.assertIn("needs gzip", self.run_script("good", expect=3, PATH=str(programs), VITRO_FETCH_TOOL=""))

    def test_wrong_usage_is_exit_code_2(self):
        for arguments in ([], ["a", "b"], [""], ["--unknown"]):
            self.assertEqual(subprocess.run([SCRIPT, *arguments], capture_output=True).returncode, 2)
        shown = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0)
        self.assertIn("usage: tools/fetch_mnist.sh DIR", shown.stdout)

    def test_the_sums_in_the_repository_are_those_of_mnist(self):
        mnist = os.environ.get("VITRO_MNIST_DIR")
        if not mnist:
            self.skipTest("VITRO_MNIST_DIR is not set")
        self.server.files = {name + ".gz": (pathlib.Path(mnist) / (name + ".gz")).read_bytes() for name in NAMES}
        self.run_script("good", expect=0, VITRO_MNIST_SHA256="")
        self.assertEqual(len(list(self.target.glob("*.gz"))), 4)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    if not shutil.which(TOOL):
        print(f"skipped: {TOOL} is not installed")
        sys.exit(77)
    unittest.main()
