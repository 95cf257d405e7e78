#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws configurations of single operations and writes PyTorch's results for them, forward and gradients, to ops.json/.bin.

Usage: make_golden_ops.py [FOLDER]    (default: the folder of this script; what the comparison leaves out is in README.md)
"""
import pathlib
import sys
import zlib

import numpy as np
import torch
import torch.nn.functional as F

from golden_writer import GoldenWriter, leaf, numpy, setup


class Draw(np.random.RandomState):
    """NumPy's legacy generator: its streams are frozen, so a seed means the same numbers in every release."""

    def __init__(self, family, index):
        super().__init__(zlib.crc32(f"{family}/{index}".encode()))

    def between(self, low, high):
        return int(self.randint(low, high + 1))

    def pair(self, low, high):
        return [self.between(low, high), self.between(low, high)]

    def chance(self, probability):
        return bool(self.random_sample() < probability)

    def pick(self, values):
        return values[self.randint(len(values))]

    def values(self, *shape, scale=1.0):
        return (self.standard_normal(shape) * scale).astype(np.float32)

    def distinct(self, *shape):
        """Values without ties, so that the place of a maximum is not a matter of convention."""
        count = int(np.prod(shape))
        return ((self.permutation(count) - count // 2) * 0.0625).astype(np.float32).reshape(shape)


def backward(y, dy, leaves):
    """The gradients of sum(y * dy) by name."""
    grads = torch.autograd.grad(y, list(leaves.values()), torch.as_tensor(dy, dtype=torch.float64))
    return {f"d{name}": grad for name, grad in zip(leaves, grads)}


def nchw(x):
    return np.ascontiguousarray(np.transpose(x, (0, 3, 1, 2)))


def nhwc(tensor):
    return np.transpose(numpy(tensor), (0, 2, 3, 1))


def effective(kernel, dilation):
    return dilation * (kernel - 1) + 1


def draw_padding(draw, limit_h, limit_w):
    """[top, left, bottom, right]: none, symmetric or four different numbers."""
    style = draw.pick(["none", "symmetric", "symmetric", "free", "free"])
    top, left = draw.between(0, limit_h), draw.between(0, limit_w)
    if style == "none":
        return [0, 0, 0, 0]
    if style == "symmetric":
        return [top, left, top, left]
    return [top, left, draw.between(0, limit_h), draw.between(0, limit_w)]


def conv2d(out, draw, index):
    large = index < 4  # more output channels than a register tile is wide, and more than one tile of pixels
    groups, width = draw.pick([(1, 1), (1, 1), (1, 1), (2, 2), (3, 2), (0, 1), (0, 2)])
    if groups == 0:  # depthwise, with one or two filters a channel
        groups = draw.between(2, 6)
        channels, filters = groups, groups * width
    else:
        channels, filters = groups * draw.between(1, 4), groups * draw.between(1, 5)
    if large:
        groups, channels, filters = [(1, 16, 40), (1, 3, 33), (2, 16, 34), (17, 17, 34)][index]
    while True:
        size, kernel = draw.pair(3, 8), draw.pair(1, 4)
        stride, dilation = draw.pair(1, 3), draw.pick([[1, 1], [1, 1], draw.pair(1, 3)])
        padding = draw_padding(draw, 3, 3)
        padded = [size[0] + padding[0] + padding[2], size[1] + padding[1] + padding[3]]
        if all(effective(kernel[i], dilation[i]) <= padded[i] for i in range(2)):
            break
    images = draw.between(1, 2)
    x = draw.values(images, *size, channels)
    w = draw.values(*kernel, channels // groups, filters)
    b = draw.values(filters)

    leaves = {"x": leaf(nchw(x)), "w": leaf(np.transpose(w, (3, 2, 0, 1))), "b": leaf(b)}
    top, left, bottom, right = padding
    if (top, left) == (bottom, right):
        y = F.conv2d(leaves["x"], leaves["w"], leaves["b"], stride, (top, left), dilation, groups)
    else:
        y = F.conv2d(F.pad(leaves["x"], (left, right, top, bottom)), leaves["w"], leaves["b"], stride, 0, dilation, groups)
    dy = draw.values(images, *y.shape[2:], filters)
    grads = backward(y, nchw(dy), leaves)
    out.case(
        "conv2d",
        {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups},
        {"x": x, "w": w, "b": b, "dy": dy},
        {
            "y": nhwc(y),
            "dx": nhwc(grads["dx"]),
            "dw": np.transpose(numpy(grads["dw"]), (2, 3, 1, 0)),
            "db": numpy(grads["db"]),
        },
    )


def linear(out, draw, index):
    rows, inputs, outputs = draw.between(1, 12), draw.between(1, 34), draw.between(1, 34)
    if index < 3:  # rows beyond one chunk of the weight gradient, a long chain, an empty batch
        rows, inputs, outputs = [(1100, 3, 2), (2, 700, 3), (0, 4, 3)][index]
    x, w, b = draw.values(rows, inputs), draw.values(inputs, outputs), draw.values(outputs)
    leaves = {"x": leaf(x), "w": leaf(w.T), "b": leaf(b)}
    y = F.linear(leaves["x"], leaves["w"], leaves["b"])
    dy = draw.values(rows, outputs)
    grads = backward(y, dy, leaves)
    out.case(
        "linear",
        {},
        {"x": x, "w": w, "b": b, "dy": dy},
        {"y": numpy(y), "dx": numpy(grads["dx"]), "dw": numpy(grads["dw"]).T, "db": numpy(grads["db"])},
    )


def draw_pool(draw, reach=0):
    """Attributes of a pooling and what PyTorch is to be given for them. With reach 0 every window holds a pixel.

    PyTorch pads both sides equally; what is left of the four numbers goes to F.pad. With ceil_mode that surplus may only be at the
    top and left: at the other end PyTorch would take it for part of the image and keep windows that start in it.
    """
    ceil_mode = not reach and draw.chance(0.5)
    while True:
        size, kernel, stride = draw.pair(3, 9), draw.pair(1, 4), draw.pair(1, 4)
        top, left, bottom, right = draw_padding(draw, kernel[0] - 1 + reach, kernel[1] - 1 + reach)
        if ceil_mode:
            top, bottom = max(top, bottom), min(top, bottom)
            left, right = max(left, right), min(left, right)
        if kernel[0] > size[0] + top + bottom or kernel[1] > size[1] + left + right:
            continue
        own = [min(top, bottom, kernel[0] // 2), min(left, right, kernel[1] // 2)]
        surplus = (left - own[1], right - own[1], top - own[0], bottom - own[0])
        if ceil_mode and (surplus[1] or surplus[3]):
            continue
        attrs = {"kernel": kernel, "stride": stride, "padding": [top, left, bottom, right], "ceil_mode": ceil_mode}
        return size, attrs, {"kernel_size": kernel, "stride": stride, "padding": own, "ceil_mode": ceil_mode}, surplus


def finish_pool(out, draw, op, attrs, x, leaves, y):
    dy = draw.values(x.shape[0], *y.shape[2:], x.shape[3])
    grads = backward(y, nchw(dy), leaves)
    out.case(op, attrs, {"x": x, "dy": dy}, {"y": nhwc(y), "dx": nhwc(grads["dx"])})


def max_pool2d(out, draw, index):
    size, attrs, arguments, surplus = draw_pool(draw)
    x = draw.distinct(draw.between(1, 2), *size, draw.pick([1, 2, 3, 5, 17]))
    leaves = {"x": leaf(nchw(x))}
    y = F.max_pool2d(F.pad(leaves["x"], surplus, value=-np.inf), **arguments)
    finish_pool(out, draw, "max_pool2d", attrs, x, leaves, y)


def avg_pool2d(out, draw, index):
    divisor = ["valid", "padded", "window"][index % 3]
    size, attrs, arguments, surplus = draw_pool(draw, reach=2 if divisor != "valid" and draw.chance(0.25) else 0)
    attrs["divisor"] = divisor
    x = draw.values(draw.between(1, 2), *size, draw.pick([1, 2, 3, 5, 17]))
    leaves = {"x": leaf(nchw(x))}
    padded = F.pad(leaves["x"], surplus)
    if divisor == "window":
        y = F.avg_pool2d(padded, **arguments, divisor_override=attrs["kernel"][0] * attrs["kernel"][1])
    elif divisor == "padded":
        y = F.avg_pool2d(padded, **arguments, count_include_pad=True)
    elif any(surplus):
        inside = F.pad(torch.ones_like(leaves["x"]), surplus)
        y = F.avg_pool2d(padded, **arguments, divisor_override=1) / F.avg_pool2d(inside, **arguments, divisor_override=1)
    else:
        y = F.avg_pool2d(padded, **arguments, count_include_pad=False)
    finish_pool(out, draw, "avg_pool2d", attrs, x, leaves, y)


def draw_shape(draw, low_rank, high_rank, high):
    return [draw.between(1, high) for _ in range(draw.between(low_rank, high_rank))]


def relu(out, draw, index):
    shape = [0, 3] if index == 0 else draw_shape(draw, 1, 4, 6)
    x, dy = draw.values(*shape), draw.values(*shape)
    x.reshape(-1)[::7] = 0.0
    leaves = {"x": leaf(x)}
    y = F.relu(leaves["x"])
    out.case("relu", {}, {"x": x, "dy": dy}, {"y": numpy(y), "dx": numpy(backward(y, dy, leaves)["dx"])})


def softmax_like(out, draw, name, function):
    rows, classes, scale = draw.between(1, 8), draw.pick([1, 2, 7, 10, 16, 17, 40]), draw.pick([0.1, 1.0, 10.0, 1000.0])
    x, dy = draw.values(rows, classes, scale=scale), draw.values(rows, classes)
    if name == "softmax" and scale == 1000.0:
        # The gradient of a saturated row is a difference that no float32 implementation keeps (README.md): a close second best.
        for row in x:
            row[np.argsort(row)[-2:-1]] = row.max() - np.float32(draw.uniform(0, 2))
    leaves = {"x": leaf(x)}
    y = function(leaves["x"], dim=-1)
    out.case(name, {}, {"x": x, "dy": dy}, {"y": numpy(y), "dx": numpy(backward(y, dy, leaves)["dx"])})


def softmax(out, draw, index):
    softmax_like(out, draw, "softmax", F.softmax)


def log_softmax(out, draw, index):
    softmax_like(out, draw, "log_softmax", F.log_softmax)


def cross_entropy(out, draw, index):
    rows, classes, scale = draw.between(1, 20), draw.pick([2, 3, 10, 17, 33]), draw.pick([0.1, 1.0, 10.0, 1000.0])
    x = draw.values(rows, classes, scale=scale)
    labels = draw.randint(0, classes, rows).astype(np.int32)
    leaves = {"x": leaf(x)}
    loss = F.cross_entropy(leaves["x"], torch.as_tensor(labels, dtype=torch.int64))
    grads = backward(loss, 1.0, leaves)
    out.case("cross_entropy", {}, {"x": x, "labels": labels}, {"loss": numpy(loss), "dx": numpy(grads["dx"])})


def broadcast_binary(out, draw, index, name, function):
    shape = draw_shape(draw, 1, 5, 4)
    shapes = []
    for _ in range(2):
        kept = shape[draw.between(0, len(shape)) if draw.chance(0.4) else 0 :]
        shapes.append([1 if draw.chance(0.3) else size for size in kept])
    if index < 4:  # a long reduction over leading axes, over trailing ones, over both, and an empty one
        shapes = [([700, 3], [3]), ([3, 90], [3, 1]), ([30, 3, 20], [1, 3, 1]), ([0, 3], [3])][index]
    inputs, leaves, orders = {}, {}, {}
    for key, target in zip("ab", shapes):
        # Stored with its axes permuted; read through a view that permutes them back.
        order = [int(axis) for axis in draw.permutation(len(target))] if draw.chance(0.5) else list(range(len(target)))
        stored = draw.values(*[target[axis] for axis in np.argsort(order)])
        inputs[key], orders[key] = stored, order
        leaves[key] = leaf(np.transpose(stored, order))
    y = function(leaves["a"], leaves["b"])
    inputs["dy"] = draw.values(*y.shape)
    grads = backward(y, inputs["dy"], leaves)
    attrs = {"a_order": orders["a"], "b_order": orders["b"]}
    out.case(name, attrs, inputs, {"y": numpy(y), "da": numpy(grads["da"]), "db": numpy(grads["db"])})


def add(out, draw, index):
    broadcast_binary(out, draw, index, "add", torch.add)


def mul(out, draw, index):
    broadcast_binary(out, draw, index, "mul", torch.mul)


def permute(out, draw, index):
    shape = draw_shape(draw, 2, 6, 4)
    order = [int(axis) for axis in draw.permutation(len(shape))]
    x = draw.values(*shape)
    leaves = {"x": leaf(x)}
    y = leaves["x"].permute(order)
    dy = draw.values(*y.shape)
    out.case("permute", {"order": order}, {"x": x, "dy": dy}, {"y": numpy(y), "dx": numpy(backward(y, dy, leaves)["dx"])})


def sgd_update(out, draw, index):
    """torch.optim.SGD over three steps; PyTorch makes its velocity in the first, which equals starting from zero."""
    size = draw.between(1, 70)
    rate, momentum, decay = (np.float32(v) for v in draw.pick([(0.05, 0.9, 5e-4), (0.1, 0.0, 0.01), (0.01, 0.5, 0.0)]))
    p = draw.values(size)
    steps = draw.values(3, size)
    parameter = leaf(p)
    optimizer = torch.optim.SGD([parameter], lr=float(rate), momentum=float(momentum), weight_decay=float(decay))
    for gradient in steps:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    hyper = np.array([rate, momentum, decay], dtype=np.float32)
    out.case("sgd_update", {}, {"p": p, "g": steps, "hyper": hyper}, {"p_after": numpy(parameter)})


FAMILIES = [
    (conv2d, 120),
    (linear, 30),
    (max_pool2d, 50),
    (avg_pool2d, 60),
    (relu, 10),
    (softmax, 20),
    (log_softmax, 20),
    (cross_entropy, 20),
    (add, 30),
    (mul, 30),
    (permute, 20),
    (sgd_update, 10),
]


def main():
    setup()
    out = GoldenWriter("make_golden_ops.py")
    for family, count in FAMILIES:
        for index in range(count):
            family(out, Draw(family.__name__, index), index)
    out.write(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent, "ops")


if __name__ == "__main__":
    main()
