#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lenet_train's saved trainings: going on, what contradicts them, interruption by every way a shell has, and divergence.

usage: lenet_train_saving_test.py PROGRAM. Trains on small parts of data/sample.
"""
import fcntl
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from lenet_train_support import SAMPLE, LenetTrainTest, clean_environment, contents, forge_training, saved_file, training


class Saving(LenetTrainTest):
    def test_a_saved_model_evaluates_as_it_did(self):
        trained = self.report("--epochs", 1, "--limit", 300, "--save", self.folder / "model")
        evaluated = self.report("--load", self.folder / "model", "--eval")
        self.assertEqual(evaluated["test_accuracy"], trained["test_accuracy"])
        self.assertEqual(evaluated["weights_sha256"], trained["weights_sha256"])
        self.assertEqual(evaluated["confusion"], trained["confusion"])
        model = json.loads((self.folder / "model" / "model.json").read_text())
        self.assertEqual(model["weights_sha256"], trained["weights_sha256"])
        self.assertEqual(sorted(contents(self.folder / "model")),
                         sorted(["model.json", *(model[kind]["file"] for kind in ["weights", "training", "optimizer"])]))

    def test_more_epochs_go_on_where_a_training_ended(self):
        whole = self.report("--recipe", "seed", "--epochs", 2, "--limit", 300)
        self.report("--recipe", "seed", "--epochs", 1, "--limit", 300, "--save", self.folder / "m")
        resumed = self.report("--load", self.folder / "m", "--epochs", 2)
        self.assertEqual(resumed["weights_sha256"], whole["weights_sha256"])
        self.assertEqual(len(resumed["epochs"]), 2)
        self.assertEqual(resumed["configuration"]["limit"], 300)

    def test_a_finished_training_is_saved_elsewhere_as_it_is(self):
        self.run_program("--epochs", 1, "--limit", 100, "--save", self.folder / "m")
        self.run_program("--load", self.folder / "m", "--save", self.folder / "copy")
        self.assertEqual(contents(self.folder / "copy"), contents(self.folder / "m"))

    def test_options_that_contradict_a_saved_training_are_refused(self):
        model = self.folder / "m"
        self.run_program("--epochs", 3, "--limit", 100, "--save", model)
        for option in [("--batch", "32"), ("--seed", "2"), ("--recipe", "seed"), ("--limit", "99"), ("--limit", "101")]:
            result = self.run_program("--load", model, *option, code=1)
            self.assertIn(option[0], result.stderr)
            self.assertIn("--restart", result.stderr)
        result = self.run_program("--load", model, "--epochs", 2, code=1)
        self.assertIn("the smallest number allowed is 3", result.stderr)
        self.run_program("--load", model, "--epochs", 3)
        self.run_program("--load", model, "--restart", "--batch", 32, "--epochs", 1, "--limit", 64)

    def test_a_limit_beyond_the_data_may_be_repeated_when_going_on(self):
        options = ("--limit", 1000000, "--batch", 600)
        self.run_program("--epochs", 1, *options, "--save", self.folder / "m")
        report = self.report("--load", self.folder / "m", "--epochs", 2, *options)
        self.assertEqual(len(report["epochs"]), 2)

    def test_a_training_goes_on_with_its_own_data_only(self):
        data = self.folder / "data"
        shutil.copytree(SAMPLE, data)
        self.run_program("--epochs", 1, "--limit", 100, "--save", self.folder / "m", data=data)
        path = data / "train-labels-idx1-ubyte.gz"
        labels = bytearray(gzip.decompress(path.read_bytes()))
        labels[8 + 99] = (labels[8 + 99] + 1) % 10
        path.write_bytes(gzip.compress(labels))
        result = self.run_program("--load", self.folder / "m", "--epochs", 2, data=data, code=1)
        self.assertIn("other images or labels", result.stderr)
        self.assertIn(training(self.folder / "m")["data_xxh64"], result.stderr)
        labels[8 + 99] = (labels[8 + 99] + 9) % 10
        labels[8 + 100] = (labels[8 + 100] + 1) % 10  # beyond the limit
        path.write_bytes(gzip.compress(labels))
        self.run_program("--load", self.folder / "m", "--epochs", 2, data=data)

    def test_a_model_without_its_training_evaluates_and_says_what_going_on_needs(self):
        model = self.folder / "m"
        self.run_program("--epochs", 1, "--limit", 100, "--save", model)
        path = saved_file(model, "training")
        path.unlink()
        self.run_program("--load", model, "--eval")
        result = self.run_program("--load", model, "--epochs", 2, code=1)
        self.assertIn(path.name, result.stderr)
        self.assertIn("--restart", result.stderr)
        self.run_program("--load", model, "--restart", "--epochs", 1, "--limit", 64)
        weights = saved_file(model, "weights")
        weights.write_bytes(weights.read_bytes()[:-40])
        self.assertIn(weights.name, self.run_program("--load", model, "--eval", code=1).stderr)

    def test_a_recipe_that_the_program_does_not_have_is_refused(self):
        self.run_program("--epochs", 1, "--limit", 100, "--save", self.folder / "m")
        forge_training(self.folder / "m", '"name": "default"', '"name": "mine"')
        self.assertIn('"mine"', self.run_program("--load", self.folder / "m", "--epochs", 2, code=1).stderr)

    def test_a_report_never_replaces_a_file_of_a_model(self):
        model = self.folder / "m"
        self.run_program("--epochs", 1, "--limit", 100, "--save", model)
        before = contents(model)
        for path in [model / "model.json", model / ".." / "m" / "model.json", saved_file(model, "weights")]:
            for option in [("--load", model, "--eval"), ("--save", model, "--epochs", 1, "--limit", 100)]:
                self.assertIn("--report", self.run_program(*option, "--report", path, code=1).stderr)
        self.assertEqual(contents(model), before)

    def interrupt(self, *arguments, signals=(signal.SIGINT,), pause=0.0):
        """Starts a long training, sends the signals once it is in its second epoch, and returns (exit code, standard error)."""
        with subprocess.Popen(self.command("--limit", 640, *arguments), cwd=self.folder, text=True, env=clean_environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            for line in process.stdout:
                if line.startswith("epoch"):
                    break
            for number in signals:
                process.send_signal(number)
                time.sleep(pause)
            _, errors = process.communicate(timeout=120)
            return process.returncode, errors

    def test_an_interrupted_training_is_saved_and_ends_with_the_bits_of_a_whole_one(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            model = self.folder / number.name
            options = ("--recipe", "seed", "--epochs", 400, "--isa", "scalar")
            code, errors = self.interrupt(*options, "--save", model, signals=[number])
            self.assertEqual(code, 130, errors)
            self.assertIn("--load", errors)
            epochs = training(model)["position"]["epoch"] + 1
            resumed = self.report("--load", model, "--epochs", epochs)
            whole = self.report("--recipe", "seed", "--epochs", epochs, "--limit", 640)
            self.assertEqual(resumed["weights_sha256"], whole["weights_sha256"])
            self.assertEqual(len(resumed["epochs"]), epochs)

    def test_a_second_interruption_ends_the_program_and_leaves_a_whole_state(self):
        model = self.folder / "m"
        for pause in [0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064]:
            arguments = ("--epochs", 4000, "--save", model, *(("--load", model) if model.exists() else ()))
            code, errors = self.interrupt(*arguments, signals=[signal.SIGINT] * 2, pause=pause)
            self.assertEqual(code, 130, errors)
            done = training(model)["position"]
            least = done["epoch"] + (done["step"] > 0)
            if least > 1:
                self.assertIn(f"allowed is {least}", self.run_program("--load", model, "--epochs", 1, code=1).stderr)
            self.run_program("--load", model, "--eval", "--quiet")
            self.assertEqual(len([name for name in contents(model) if not name.startswith(".")]), 4)

    def test_a_second_interruption_does_not_cut_a_save_short(self):
        model = self.folder / "m"
        with subprocess.Popen(self.command("--epochs", 4000, "--limit", 640, "--save", model), text=True, env=clean_environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            while not process.stdout.readline().startswith("epoch"):
                pass
            lock = os.open(model, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)  # the next save waits for this
            state = pathlib.Path(f"/proc/{process.pid}/stat")
            sleeping = 0
            while sleeping < 5:  # one that computes is never seen asleep
                time.sleep(0.02)
                sleeping = sleeping + 1 if state.read_text().rpartition(")")[2].split()[0] == "S" else 0
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            self.assertIsNone(process.poll())
            os.close(lock)
            _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)
        self.assertIn("saved in", errors)

    def test_an_interruption_without_save_says_that_nothing_was_saved(self):
        code, errors = self.interrupt("--epochs", 400)
        self.assertEqual(code, 130)
        self.assertIn("nothing was saved", errors)

    def test_a_reader_that_goes_away_costs_the_output_only(self):
        command = self.command("--epochs", 3, "--limit", 100, "--save", self.folder / "m")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(),
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)) as process:
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn(b"standard output", errors)
        self.assertEqual(training(self.folder / "m")["position"]["epoch"], 3)

    def test_without_save_and_report_a_training_that_nobody_sees_ends(self):
        start = time.monotonic()
        with open("/dev/full", "wb") as full:
            result = subprocess.run(self.command("--epochs", 100000, "--limit", 100), stdout=full, stderr=subprocess.PIPE, check=False,
                                    timeout=120)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_training_that_diverges_ends_with_3_and_names_the_layer(self):
        model = self.folder / "m"
        self.run_program("--epochs", 1, "--limit", 128, "--save", model)
        forge_training(model, r'"rate": [^,]*', '"rate": 1e30')
        before = contents(model)
        result = self.run_program("--load", model, "--save", model, "--epochs", 5, code=3)
        self.assertRegex(result.stderr, "layer (conv|fc)[0-9]")
        self.assertEqual(contents(model), before)

    def test_a_last_step_that_diverges_is_not_saved_over_the_last_good_state(self):
        model = self.folder / "m"
        for decay, message in [("3e38", "the last update made"), ("0.0", "loss on the test images")]:
            self.run_program("--recipe", "seed", "--epochs", 1, "--limit", 100, "--batch", 100, "--save", model)
            forge_training(model, r'"rate": [^,]*,\n    "warmup_epochs": 5', '"rate": 3e38,\n    "warmup_epochs": 0')
            forge_training(model, '"weight_decay": 0,', f'"weight_decay": {decay},')
            before = contents(model)
            result = self.run_program("--load", model, "--save", model, "--epochs", 2, code=3)
            self.assertRegex(result.stderr, message)
            self.assertEqual(contents(model), before)
            shutil.rmtree(model)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
