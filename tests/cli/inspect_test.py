#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inspect as a user at a shell meets it: listing, maps, constants, files, exit codes.

usage: inspect_test.py INSPECT LENET_TRAIN. Looks at a LeNet-5 that was trained for a few steps on data/sample.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM, TRAIN = map(os.path.abspath, sys.argv[1:3])
SVG = "{http://www.w3.org/2000/svg}"


class Inspect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="vitro cli "))  # with a space, as people's folders have
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.model = cls.folder / "digits"
        subprocess.run([TRAIN, "--quiet", "--data", ROOT / "data" / "sample", "--epochs", "1", "--limit", "64", "--save", cls.model],
                       check=True, capture_output=True, timeout=240)

    def run_program(self, *arguments, code=0):
        result = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=240,
                                check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def show(self, *arguments):
        return self.run_program(self.model, *arguments).stdout

    def constant(self, text, name):
        return int(re.search(rf"(?m)^constexpr std::size_t {name} = (\d+);", text).group(1))

    def test_it_lists_layers_steps_and_the_constants_of_a_build(self):
        text = self.show("--isa", "blocked")
        self.assertRegex(text, r"(?m)^lenet5: 44426 parameters, input \[1, 28, 28, 1\], weights sha256 [0-9a-f]{64}$")
        self.assertRegex(text, r"(?m)^conv2 +conv2d +\[1, 8, 8, 16\] +2416 ")
        self.assertRegex(text, r"(?m)^   0  conv2d \+ relu \+ max_pool2d +183\.2 kflop  writes +%\d+ f32\[1, 12, 12, 6\] +3\.4 KiB  arena @0$")
        self.assertRegex(text, r"(?m)^arena 4480 bytes \(lower bound 4480\)")
        self.assertIn("blocked kernels, 1 thread(s)", text)
        self.assertGreaterEqual(self.constant(text, "kSessionBytes"), 4480)
        self.assertEqual(self.constant(text, "kSessionBytes") % 64, 0)
        self.assertEqual(self.constant(text, "kInputFloats"), 784)
        self.assertEqual(self.constant(text, "kOutputFloats"), 10)
        sha256 = re.search(r"weights sha256 ([0-9a-f]{64})", text).group(1)
        self.assertIn(f"// lenet5, weights sha256 {sha256}\n// batch 1, blocked kernels, 1 thread(s)\n", text)

    def test_the_batch_and_the_threads_change_the_sizes(self):
        one, eight = self.show("--isa", "scalar"), self.show("--isa", "scalar", "--batch", 8)
        self.assertIn("[8, 12, 12, 6]", eight)
        self.assertEqual(self.constant(eight, "kInputFloats"), 8 * 784)
        self.assertGreater(self.constant(eight, "kSessionBytes"), self.constant(one, "kSessionBytes"))
        two = self.show("--isa", "scalar", "--threads", 2)
        self.assertGreater(self.constant(two, "kSessionBytes"), self.constant(one, "kSessionBytes"))

    def test_switches_turn_fusion_and_reuse_off(self):
        text = self.show("--no-fuse", "--no-reuse")
        self.assertNotIn("conv2d + relu", text)
        self.assertRegex(text, r"(?m)^   1  relu ")
        self.assertIn("not fused, memory not reused", text)
        arena = re.search(r"arena (\d+) bytes \(lower bound (\d+)\)", text)
        self.assertGreater(int(arena.group(1)), int(arena.group(2)))

    def test_a_training_step_has_updates_and_no_session(self):
        text = self.show("--train", "--batch", 16)
        self.assertIn("Training step, batch 16", text)
        self.assertRegex(text, r"sgd_update[^\n]*updates %\d+ f32")
        self.assertIn("cross_entropy_grad", text)
        self.assertNotIn("kSessionBytes", text)

    def test_the_arena_as_text_has_a_row_for_each_block(self):
        text = self.show("--arena-text")
        rows = re.findall(r"(?m)^ +(\d+) +(\d+)  (%\d+ f32\[[^\]]*\]) +(\d+)-(\d+) +([#.]+)$", text)
        self.assertEqual(len(rows), 4)
        for offset, size, _, first, last, bar in rows:
            self.assertLessEqual(int(offset) + int(size), 4480)
            self.assertEqual(bar, "." * int(first) + "#" * (int(last) - int(first) + 1) + "." * (len(bar) - int(last) - 1))
        long_bar = re.findall(r"[#.]{8,}", self.show("--train", "--arena-text"))
        self.assertTrue(all(len(bar) <= 64 for bar in long_bar))

    def test_the_arena_as_svg_is_whole_and_to_scale(self):
        path = self.folder / "arena.svg"
        self.show("--arena-svg", path)
        root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        groups = root.findall(SVG + "g")
        self.assertEqual(len(groups), 4)
        self.assertIn("3456 bytes at 0, steps 0 to 1", groups[0].find(SVG + "title").text)
        heights = [float(g.find(SVG + "rect").get("height")) for g in groups]
        self.assertAlmostEqual(heights[0] / 560, 3456 / 4480, places=3)
        self.assertEqual(sum(line.get("stroke-dasharray") is not None for line in root.findall(SVG + "line")), 1)
        self.assertNotIn("href", path.read_text())

    def test_the_graph_has_a_vertex_for_each_step(self):
        path = self.folder / "plan.dot"
        self.show("--graphviz", path)
        text = path.read_text()
        self.assertTrue(text.startswith("digraph plan {") and text.endswith("}\n"))
        self.assertEqual(len(re.findall(r"(?m)^  s\d+ \[label=", text)), 6)

    def test_errors_name_what_is_wrong(self):
        nowhere = self.run_program(self.folder / "nowhere", code=1)
        self.assertIn("inspect: ", nowhere.stderr)
        self.assertIn("nowhere", nowhere.stderr)
        result = self.run_program(self.model, "--arena-svg", self.folder / "no" / "such.svg", code=1)
        self.assertIn("--arena-svg: ", result.stderr)
        for arguments in ([], [self.model, "--batch", "0"], [self.model, "--batch", "x"], [self.model, "--isa", "neon"],
                          [self.model, "--batch="], [self.model, "--nonsense"], [self.model, "--threads", "257"]):
            self.assertNotEqual(self.run_program(*arguments, code=2).stderr, "")
        self.assertIn("--arena-svg", self.run_program("--help").stdout)
        self.assertRegex(self.run_program("--version").stdout, r"^inspect \d")

    def test_a_full_disk_is_noticed(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([PROGRAM, self.model], stdout=full, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
