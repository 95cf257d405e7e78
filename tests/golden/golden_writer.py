# SPDX-License-Identifier: Apache-2.0
"""Writes golden files: an index in JSON (one case a line) beside one little-endian blob. The format is in README.md."""
import json
import pathlib
import platform

import numpy as np
import torch

TYPES = {"f32": "<f4", "f64": "<f8", "i32": "<i4", "u8": "u1"}


def setup():
    """References are double precision, on one thread, from PyTorch's own loops, so that a second run writes the same bytes."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.mkldnn.enabled = False


def leaf(array):
    """A double tensor that wants a gradient; every float32 value of `array` is kept exactly."""
    return torch.tensor(np.asarray(array), dtype=torch.float64, requires_grad=True)


def numpy(tensor):
    return tensor.detach().numpy()


class GoldenWriter:
    def __init__(self, generator):
        self.header = {
            "generator": generator,
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "torch": torch.__version__,
                "machine": platform.machine(),
            },
        }
        self.cases = []
        self.blob = bytearray()

    def _store(self, array, kind):
        array = np.asarray(array)
        stored = array.astype(TYPES[kind])
        if kind != "f64" and not np.array_equal(stored.astype(array.dtype), array):
            raise ValueError(f"a value is not representable as {kind}")
        self.blob.extend(bytes(-len(self.blob) % stored.itemsize))
        entry = {"type": kind, "shape": list(stored.shape), "offset": len(self.blob)}
        self.blob.extend(stored.tobytes(order="C"))
        return entry

    def case(self, op, attrs, inputs, references):
        """Inputs are float32 (or integer) arrays, references float64 ones, all in Vitro's layouts."""
        kinds = {np.dtype("f4"): "f32", np.dtype("i4"): "i32", np.dtype("u1"): "u8"}
        tensors = {name: self._store(a, kinds[np.asarray(a).dtype]) for name, a in inputs.items()}
        tensors.update({name: self._store(a, "f64") for name, a in references.items()})
        self.cases.append({"op": op, "attrs": attrs, "tensors": tensors})

    def write(self, folder, name):
        folder = pathlib.Path(folder)
        header = dict(self.header, blob=f"{name}.bin", blob_bytes=len(self.blob))
        lines = ["{"]
        lines += [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in header.items()]
        lines += ['"cases": [', ",\n".join(json.dumps(case) for case in self.cases), "]", "}"]
        (folder / f"{name}.json").write_text("\n".join(lines) + "\n")
        (folder / f"{name}.bin").write_bytes(self.blob)
        print(f"{name}: {len(self.cases)} cases, {len(self.blob)} bytes, torch {torch.__version__}")
