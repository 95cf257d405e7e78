#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lenet_train as a user at a shell meets it: output, exit codes, report, saving, interruption and going on.

usage: lenet_train_test.py PROGRAM. Trains on small parts of data/sample.
"""
import gzip
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "data" / "sample"
PROGRAM = ""


def clean_environment():
    environment = dict(os.environ)
    environment.pop("VITRO_MNIST_DIR", None)
    return environment


class LenetTrain(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vitro cli "))  # with a space, as people's folders have
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, *arguments, code=0, cwd=None, data=SAMPLE, environment=None):
        command = [PROGRAM, *(["--data", str(data)] if data else []), *map(str, arguments)]
        result = subprocess.run(command, cwd=cwd or self.folder, env=environment or clean_environment(),
                                capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def report(self, *arguments, **keywords):
        path = self.folder / "report.json"
        self.run_program("--report", path, *arguments, **keywords)
        return json.loads(path.read_text())

    def test_a_run_prints_plain_lines_and_reports_what_it_did(self):
        path = self.folder / "report.json"
        result = self.run_program("--epochs", 2, "--limit", 300, "--batch", 50, "--seed", 7, "--recipe", "seed", "--report", path)
        self.assertRegex(result.stdout, r"(?m)^epoch 1/2  loss \d\.\d{4}  train +\d+\.\d\d %  test +\d+\.\d\d %")
        self.assertNotIn("\r", result.stdout)
        self.assertIn("Confusion matrix", result.stdout)
        self.assertIn("Most confused:", result.stdout)
        self.assertRegex(result.stdout, r"Tape of the last training step: \d+ bytes")
        self.assertRegex(result.stdout, r"(?m)^Test accuracy: \d+\.\d\d % \(\d+ of 1000\)$")
        self.assertEqual(result.stderr, "")
        report = json.loads(path.read_text())
        self.assertEqual(len(report["epochs"]), 2)
        self.assertEqual(sorted(report["epochs"][0]), ["loss", "seconds", "test_accuracy", "train_accuracy"])
        self.assertEqual(report["test_accuracy"], report["epochs"][1]["test_accuracy"])
        self.assertRegex(report["weights_sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(report["threads"], 1)
        for key, value in {"epochs": 2, "batch": 50, "seed": 7, "recipe": "seed", "limit": 300, "train_images": 300}.items():
            self.assertEqual(report["configuration"][key], value)
        self.assertEqual(sum(map(sum, report["confusion"])), 1000)
        self.assertLess(report["tape_bytes"], 16384)

    def test_the_weights_are_the_same_from_every_isa_and_number_of_threads(self):
        hashes = set()
        for options in [("--isa", "scalar"), ("--isa", "blocked"), ("--threads", "3"), ("--threads", "7", "--isa", "blocked")]:
            hashes.add(self.report("--epochs", 1, "--limit", 200, *options)["weights_sha256"])
        self.assertEqual(len(hashes), 1)

    def test_an_isa_that_the_machine_lacks_is_an_error(self):
        flags = pathlib.Path("/proc/cpuinfo").read_text()
        if "avx512f" in flags:
            self.skipTest("this machine has them all")
        result = self.run_program("--epochs", 1, "--limit", 100, "--isa", "avx512", code=1)
        self.assertIn("avx512", result.stderr)

    def test_a_saved_model_evaluates_as_it_did(self):
        trained = self.report("--epochs", 1, "--limit", 300, "--save", self.folder / "model")
        evaluated = self.report("--load", self.folder / "model", "--eval")
        self.assertEqual(evaluated["test_accuracy"], trained["test_accuracy"])
        self.assertEqual(evaluated["weights_sha256"], trained["weights_sha256"])
        self.assertEqual(evaluated["confusion"], trained["confusion"])

    def test_more_epochs_go_on_where_a_training_ended(self):
        whole = self.report("--recipe", "seed", "--epochs", 2, "--limit", 300)
        self.report("--recipe", "seed", "--epochs", 1, "--limit", 300, "--save", self.folder / "m")
        resumed = self.report("--load", self.folder / "m", "--epochs", 2)
        self.assertEqual(resumed["weights_sha256"], whole["weights_sha256"])
        self.assertEqual(len(resumed["epochs"]), 2)
        self.assertEqual(resumed["configuration"]["limit"], 300)

    def test_options_that_contradict_a_saved_training_are_refused(self):
        self.run_program("--epochs", 1, "--limit", 100, "--save", self.folder / "m")
        for option in [("--batch", "32"), ("--seed", "2"), ("--recipe", "seed"), ("--limit", "99")]:
            result = self.run_program("--load", self.folder / "m", *option, code=1)
            self.assertIn(option[0], result.stderr)
            self.assertIn("training.json", result.stderr)
        (self.folder / "m" / "training.json").unlink()
        self.run_program("--load", self.folder / "m", "--batch", 32, "--epochs", 1, "--limit", 64)

    def interrupt(self, *arguments):
        """Starts a long training, interrupts it once it is in its second epoch, and returns (exit code, standard error)."""
        with subprocess.Popen([PROGRAM, "--data", SAMPLE, "--limit", "640", *map(str, arguments)], cwd=self.folder, text=True,
                              env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            for line in process.stdout:
                if line.startswith("epoch"):
                    break
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
            return process.returncode, errors

    def test_an_interrupted_training_is_saved_and_ends_with_the_bits_of_a_whole_one(self):
        options = ("--recipe", "seed", "--epochs", 400, "--isa", "scalar")
        code, errors = self.interrupt(*options, "--save", self.folder / "m")
        self.assertEqual(code, 130, errors)
        self.assertIn("--load", errors)
        position = json.loads((self.folder / "m" / "training.json").read_text())["position"]
        epochs = position["epoch"] + 1
        resumed = self.report("--load", self.folder / "m", "--epochs", epochs)
        whole = self.report("--recipe", "seed", "--epochs", epochs, "--limit", 640)
        self.assertEqual(resumed["weights_sha256"], whole["weights_sha256"])
        self.assertEqual(len(resumed["epochs"]), epochs)

    def test_an_interruption_without_save_says_that_nothing_was_saved(self):
        code, errors = self.interrupt("--epochs", 400)
        self.assertEqual(code, 130)
        self.assertIn("nothing was saved", errors)

    def test_quiet_prints_the_accuracy_only(self):
        result = self.run_program("--quiet", "--epochs", 1, "--limit", 100)
        self.assertRegex(result.stdout, r"^Test accuracy: [^\n]*\n$")

    def test_a_terminal_sees_a_bar_that_redraws_itself(self):
        master, slave = pty.openpty()
        environment = clean_environment() | {"TERM": "xterm"}
        with subprocess.Popen([PROGRAM, "--data", SAMPLE, "--epochs", "2", "--limit", "2000", "--isa", "scalar"], stdout=slave,
                              stderr=slave, env=environment) as process:
            os.close(slave)
            output = b""
            while select.select([master], [], [], 120)[0]:
                try:
                    chunk = os.read(master, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                output += chunk
            self.assertEqual(process.wait(), 0)
        os.close(master)
        self.assertRegex(output.decode(), r"\repoch 1/2 \[#*\.*\] +\d+ %  loss \d\.\d+  \d+ images/s  .* left")
        self.assertRegex(output.decode(), r"epoch 2/2  loss")

    def test_a_wrong_command_line_ends_with_2_and_names_the_option(self):
        for arguments, text in [(("--epochs", "0"), "--epochs"), (("--epochs", "two"), "--epochs"), (("--isa", "sse"), "--isa"),
                                (("--bogus",), "--bogus"), (("--eval",), "--load"), (("--recipe", "x"), "--recipe"),
                                (("--threads", "0"), "--threads"), (("--seed", "-1"), "--seed"), (("--limit", "0"), "--limit")]:
            result = self.run_program(*arguments, code=2)
            self.assertIn(text, result.stdout + result.stderr)

    def test_help_and_version_end_with_0(self):
        self.assertIn("Exit codes", self.run_program("--help", data=None).stdout)
        self.assertRegex(self.run_program("--version", data=None).stdout, r"lenet_train \d+\.\d+\.\d+")

    def test_data_comes_from_the_option_then_the_environment_then_the_folders_here(self):
        quick = ("--epochs", 1, "--limit", 64, "--quiet")
        result = self.run_program(*quick, data=None, code=1)
        for word in ["--data", "VITRO_MNIST_DIR", "fetch_mnist.sh"]:
            self.assertIn(word, result.stderr)
        environment = clean_environment() | {"VITRO_MNIST_DIR": str(SAMPLE)}
        self.run_program(*quick, data=None, environment=environment)
        result = self.run_program(*quick, data=None, cwd=ROOT)
        if not (ROOT / "data" / "mnist").is_dir():
            self.assertIn("sample", result.stderr)
        result = self.run_program(*quick, data=self.folder, environment=environment, code=1)
        self.assertIn(str(self.folder), result.stderr)

    def test_damaged_files_are_errors_that_name_the_file(self):
        data = self.folder / "data"
        shutil.copytree(SAMPLE, data)
        labels = gzip.decompress((data / "train-labels-idx1-ubyte.gz").read_bytes())
        (data / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels[:-1]))
        result = self.run_program("--epochs", 1, data=data, code=1)
        self.assertIn("train-labels-idx1-ubyte.gz", result.stderr)
        self.assertEqual(result.stdout, "")
        self.run_program("--epochs", 1, "--limit", 100, "--save", self.folder / "m")
        weights = self.folder / "m" / "weights.bin"
        weights.write_bytes(weights.read_bytes()[:-40])
        result = self.run_program("--load", self.folder / "m", "--eval", code=1)
        self.assertIn("weights.bin", result.stderr)

    def test_places_that_cannot_be_written_are_found_before_training(self):
        start = time.monotonic()
        for arguments in [("--report", self.folder / "no" / "r.json"), ("--report", self.folder), ("--save", "/proc/vitro")]:
            self.run_program("--epochs", 1000, *arguments, code=1)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_training_that_diverges_ends_with_3_and_names_the_layer(self):
        self.run_program("--epochs", 1, "--limit", 64, "--save", self.folder / "m")
        training = self.folder / "m" / "training.json"
        training.write_text(re.sub(r'"rate": [^,]*', '"rate": 1e30', training.read_text()))
        before = (self.folder / "m" / "weights.bin").read_bytes()
        result = self.run_program("--load", self.folder / "m", "--epochs", 5, code=3)
        self.assertRegex(result.stderr, "layer (conv|fc)[0-9]")
        self.assertEqual((self.folder / "m" / "weights.bin").read_bytes(), before)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
