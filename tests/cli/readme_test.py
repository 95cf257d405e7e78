#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md tells the truth: its programs compile, link and run, its test commands select tests, its files exist.

usage: readme_test.py BUILD_FOLDER COMPILER LIBRARY [LINK FLAG]...
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


class Readme(unittest.TestCase):
    def test_the_programs_compile_and_run(self):
        programs = re.findall(r"```cpp\n(.*?)```", README, re.S)
        self.assertGreaterEqual(len(programs), 2)
        outputs = []
        with tempfile.TemporaryDirectory() as folder:
            for number, program in enumerate(programs):
                source = pathlib.Path(folder) / f"program{number}.cpp"
                source.write_text(program)
                command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{BUILD}/include", str(source), LIBRARY, *FLAGS,
                           "-o", str(source.with_suffix(""))]
                subprocess.run(command, check=True)
                result = subprocess.run([str(source.with_suffix(""))], cwd=folder, capture_output=True, text=True, check=False)
                outputs.append(result.stdout + result.stderr)
        self.assertIn("digits/model.json", outputs[0])  # there is no model here: the error must name the file
        self.assertIn("linear_grad_weight\n", outputs[1])
        self.assertRegex(outputs[1], r"dw\[0\] = -?0\.\d+")

    def test_the_commands_select_tests(self):
        selections = re.findall(r"tools/test\.sh (-[LR]) ('[^']*'|\S+)`", README)
        self.assertGreaterEqual(len(selections), 8)
        for option, pattern in selections:
            pattern = pattern.strip("'").replace("\\|", "|")  # a table needs the bar escaped
            listed = subprocess.run(["ctest", "--test-dir", BUILD, "-N", option, pattern], capture_output=True, text=True, check=True)
            self.assertNotIn("Total Tests: 0", listed.stdout, f"{option} {pattern}")

    def test_the_steps_of_the_checks_exist(self):
        steps = set(subprocess.run(["bash", ".ci/run", "--list"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
        for line in re.findall(r"`\.ci/run ([a-z_ ]+)`", README):
            self.assertLessEqual(set(line.split()), steps)

    def test_the_files_that_are_named_exist(self):
        for name in set(re.findall(r"\b((?:tools|data|tests|simd|core|ops)/[\w./]*\w)", README)):
            if name not in ("data/mnist", "core/tensor.hpp"):
                # A program of build/tools/ goes by its source.
                self.assertTrue((ROOT / name).exists() or (ROOT / f"{name}.cpp").exists(), name)


if __name__ == "__main__":
    BUILD, COMPILER, LIBRARY, *FLAGS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
