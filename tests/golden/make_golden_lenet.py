#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains LeNet-5 for ten steps in PyTorch, in double precision, and writes what Vitro must reproduce to lenet.json/.bin.

Usage: make_golden_lenet.py [FOLDER]    (default: the folder of this script). The batches are the first images of data/sample.
"""
import gzip
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

from golden_writer import GoldenWriter, leaf, numpy, setup

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "data" / "sample"
STEPS, BATCH = 10, 64
# The rates that both sides start from are float32 values.
RATE, MOMENTUM, WEIGHT_DECAY = (float(np.float32(v)) for v in (0.05, 0.9, 5e-4))

# Vitro's layouts: filters [kh, kw, in, out], linear weights [in, out]. PyTorch's axes are the permutation beside them.
CONV, LINEAR, BIAS = (3, 2, 0, 1), (1, 0), (0,)
PARAMETERS = [
    ("conv1.weight", (5, 5, 1, 6), CONV),
    ("conv1.bias", (6,), BIAS),
    ("conv2.weight", (5, 5, 6, 16), CONV),
    ("conv2.bias", (16,), BIAS),
    ("fc1.weight", (256, 120), LINEAR),
    ("fc1.bias", (120,), BIAS),
    ("fc2.weight", (120, 84), LINEAR),
    ("fc2.bias", (84,), BIAS),
    ("fc3.weight", (84, 10), LINEAR),
    ("fc3.bias", (10,), BIAS),
]


def read_idx(name, header_bytes, shape):
    with gzip.open(SAMPLE / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header_bytes).reshape(shape)


def initial_weights():
    """He-uniform weights and small biases, so that ten steps do learn, from NumPy's frozen legacy generator."""
    draw = np.random.RandomState(20)
    weights = {}
    for name, shape, _ in PARAMETERS:
        bound = math.sqrt(6 / math.prod(shape[:-1])) if name.endswith("weight") else 0.05
        weights[name] = draw.uniform(-bound, bound, shape).astype(np.float32)
    return weights


def forward(p, x):
    x = F.max_pool2d(F.relu(F.conv2d(x, p["conv1.weight"], p["conv1.bias"])), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p["conv2.weight"], p["conv2.bias"])), 2)
    x = x.permute(0, 2, 3, 1).flatten(1)  # the features in channel-last order
    x = F.relu(F.linear(x, p["fc1.weight"], p["fc1.bias"]))
    x = F.relu(F.linear(x, p["fc2.weight"], p["fc2.bias"]))
    return F.linear(x, p["fc3.weight"], p["fc3.bias"])


def to_vitro(tensor, axes):
    return np.transpose(numpy(tensor), np.argsort(axes))


def main():
    setup()
    images = read_idx("train-images-idx3-ubyte.gz", 16, (-1, 28, 28))[: STEPS * BATCH].reshape(STEPS, BATCH, 28, 28, 1)
    labels = read_idx("train-labels-idx1-ubyte.gz", 8, (-1,))[: STEPS * BATCH].reshape(STEPS, BATCH)
    # One division in float32, as Vitro does it; from there on in double.
    pixels = (images.astype(np.float32) / np.float32(255)).astype(np.float64).reshape(STEPS, BATCH, 1, 28, 28)

    weights = initial_weights()
    parameters = {name: leaf(np.transpose(weights[name], axes)) for name, _, axes in PARAMETERS}
    optimizer = torch.optim.SGD(parameters.values(), lr=RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    references, losses = {}, []
    for step in range(STEPS):
        logits = forward(parameters, torch.as_tensor(pixels[step]))
        loss = F.cross_entropy(logits, torch.as_tensor(labels[step].astype(np.int64)))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            references["logits"] = numpy(logits).copy()
            for name, _, axes in PARAMETERS:
                references[f"grad/{name}"] = to_vitro(parameters[name].grad, axes).copy()
        losses.append(float(loss))
        optimizer.step()
    references["losses"] = np.array(losses)
    references.update({f"final/{name}": to_vitro(parameters[name], axes) for name, _, axes in PARAMETERS})
    print("losses", " ".join(f"{loss:.6f}" for loss in losses))

    out = GoldenWriter("make_golden_lenet.py")
    inputs = {"images": images, "labels": labels.astype(np.int32)}
    inputs.update({f"initial/{name}": weights[name] for name, _, _ in PARAMETERS})
    attrs = {"rate": RATE, "momentum": MOMENTUM, "weight_decay": WEIGHT_DECAY}
    out.case("lenet5", attrs, inputs, references)
    out.write(sys.argv[1] if len(sys.argv) > 1 else HERE, "lenet")


if __name__ == "__main__":
    main()
