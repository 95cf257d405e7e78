#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lenet_train as a user at a shell meets it: options, output, exit codes, report, data.

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
import subprocess
import sys
import time
import unittest

from lenet_train_support import PROGRAM, ROOT, SAMPLE, LenetTrainTest, clean_environment


class LenetTrain(LenetTrainTest):
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
                                (("--threads", "0"), "--threads"), (("--seed", "-1"), "--seed"), (("--limit", "0"), "--limit"),
                                (("--restart",), "--load")]:
            result = self.run_program(*arguments, code=2)
            self.assertIn(text, result.stdout + result.stderr)

    def test_numbers_are_decimal_and_in_their_range(self):
        for value in ["18446744073709551616", "010", "0x10", "+1", "1e3", "1.0", " 1", "", "9" * 1000]:
            result = self.run_program("--seed", value, code=2)
            self.assertRegex(result.stderr, "^--seed: must be a whole number from 0 to 18446744073709551615, not ")
            self.assertLess(len(result.stderr), 250)
        for option in ["--epochs", "--batch", "--limit", "--threads"]:
            self.assertIn(f"{option}: must be a whole number from 1 to", self.run_program(option, "010", code=2).stderr)
        report = self.report("--epochs", 1, "--limit", 10, "--seed", "18446744073709551615")
        self.assertEqual(report["configuration"]["seed"], 18446744073709551615)

    def test_an_option_without_its_value_is_named(self):
        for option in ["--data", "--save", "--load", "--report"]:
            for arguments in [(option, ""), (f"{option}=",), (f"{option}=", "--quiet")]:
                result = self.run_program("--epochs", 1, *arguments, data=None, code=2)
                self.assertIn(option, result.stderr)
                self.assertIn("must not be empty", result.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_eval_refuses_what_only_a_training_can_mean_and_leaves_no_folder(self):
        self.run_program("--epochs", 1, "--limit", 10, "--save", self.folder / "m")
        for option in [("--save", self.folder / "new"), ("--epochs", 2), ("--seed", 1), ("--recipe", "seed"), ("--limit", 5),
                       ("--batch", 3), ("--restart",)]:
            result = self.run_program("--load", self.folder / "m", "--eval", *option, code=2)
            self.assertIn(option[0], result.stderr)
        self.assertFalse((self.folder / "new").exists())

    def test_output_that_is_lost_is_a_failure(self):
        for arguments in [("--epochs", 1, "--limit", 10), ("--help",)]:
            with open("/dev/full", "wb") as full:
                result = subprocess.run(self.command(*arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("standard output", result.stderr)

    def test_the_confusion_matrix_has_the_images_classes_as_its_rows_and_the_worst_pairs_first(self):
        path = self.folder / "report.json"
        text = self.run_program("--epochs", 1, "--limit", 2000, "--recipe", "seed", "--report", path).stdout
        labels = gzip.decompress((SAMPLE / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
        confusion = json.loads(path.read_text())["confusion"]
        self.assertEqual([sum(row) for row in confusion], [labels.count(label) for label in range(10)])
        rows = [list(map(int, line.split())) for line in text.splitlines() if re.match(r"^ +\d( +\d+){10}$", line)]
        self.assertEqual(rows, [[label, *confusion[label]] for label in range(10)])
        pairs = [tuple(map(int, pair)) for pair in re.findall(r"(\d) as (\d) \((\d+)\)", text)]
        wrong = sorted((confusion[a][b] for a in range(10) for b in range(10) if a != b), reverse=True)
        self.assertEqual([count for _, _, count in pairs], wrong[:5])
        for actual, predicted, count in pairs:
            self.assertEqual(confusion[actual][predicted], count)

    def test_images_per_second_leave_evaluation_out(self):
        path = self.folder / "report.json"
        line = self.run_program("--epochs", 1, "--limit", 20, "--isa", "scalar", "--report", path).stdout.splitlines()[2]
        rate = float(re.search(r"(\d+) images/s", line).group(1))
        seconds = json.loads(path.read_text())["epochs"][0]["seconds"]  # evaluation of the 1,000 test images included
        self.assertGreater(rate * seconds, 60)

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
        (data / "train-labels-idx1-ubyte.gz").unlink()
        os.mkfifo(data / "train-labels-idx1-ubyte.gz")
        result = self.run_program("--epochs", 1, data=data, code=1)
        self.assertIn("not a regular file", result.stderr)

    def test_places_that_cannot_be_written_are_found_before_training(self):
        start = time.monotonic()
        for arguments in [("--report", self.folder / "no" / "r.json"), ("--report", self.folder), ("--save", "/proc/vitro"),
                          ("--report", "/proc/r.json"), ("--save", "/proc"), ("--report", "/dev/null")]:
            self.assertIn(arguments[0], self.run_program("--epochs", 1000, *arguments, code=1).stderr)
        self.assertLess(time.monotonic() - start, 60)



if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
