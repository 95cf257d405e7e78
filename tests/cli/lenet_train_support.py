# SPDX-License-Identifier: Apache-2.0
"""What the tests of lenet_train share: running it in a folder of their own, and what lies in a saved model's folder."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "data" / "sample"
PROGRAM = os.path.abspath(sys.argv[1])


def clean_environment():
    environment = dict(os.environ)
    environment.pop("VITRO_MNIST_DIR", None)
    return environment


def saved_file(folder, kind):
    """The file of a saved model that its model.json names."""
    return folder / json.loads((folder / "model.json").read_text())[kind]["file"]


def training(folder):
    return json.loads(saved_file(folder, "training").read_text())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def seal(text):
    """A sealed document (models/sealed_json.hpp) with the hash that its text has now."""
    text = re.sub(r',\n  "sha256": "[0-9a-f]*"\n}\n$', "", text)
    return f'{text},\n  "sha256": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n'


def forge_training(folder, pattern, replacement):
    """Changes the training that is saved in a folder, hashes included."""
    path = saved_file(folder, "training")
    old = path.read_text()
    new = seal(re.sub(pattern, replacement, old))
    assert old != new
    digest = hashlib.sha256(new.encode()).hexdigest()
    path.unlink()
    (folder / f"training.{digest[:16]}.json").write_text(new)
    model = (folder / "model.json").read_text()
    model = model.replace(path.name, f"training.{digest[:16]}.json").replace(hashlib.sha256(old.encode()).hexdigest(), digest)
    (folder / "model.json").write_text(seal(model))


class LenetTrainTest(unittest.TestCase):
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

    def command(self, *arguments):
        return [PROGRAM, "--data", str(SAMPLE), *map(str, arguments)]
