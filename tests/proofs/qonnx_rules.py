#!/usr/bin/env python3
"""The results of a QONNX file by the rules of its operators, in numpy, for `scripts/prove quantized`.

usage: qonnx_rules.py FILE.onnx FOLDER

Needs numpy and onnx. Copies the file to FOLDER and writes FOLDER/NAME/x.f32 and y.f32: 2,000 random inputs within the
codes of the first quantizer, channels last, and the results. Knows the operators of networks of linear layers.
"""
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper


def quant(x, scale, zero, bits, a):
    """q = clip(round_half_even(x / scale) + zero), y = scale (q - zero)."""
    signed, narrow = a.get("signed", 1), a.get("narrow", 0)
    low = (-(2 ** (bits - 1)) + (1 if narrow else 0)) if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    return ((np.clip(np.round((x / scale).astype(np.float32)) + zero, low, high) - zero) * scale).astype(np.float32)


def compute(node, i, a):
    if node.op_type == "Quant":
        return quant(i[0], i[1], i[2], int(i[3]), a)
    if node.op_type == "BipolarQuant":
        return np.where(i[0] >= 0, i[1], -i[1]).astype(np.float32)
    if node.op_type == "Flatten":
        return i[0].reshape(len(i[0]), -1)
    if node.op_type == "Transpose":
        return i[0].transpose(a["perm"])
    if node.op_type == "MatMul":
        return i[0] @ i[1]
    if node.op_type == "Relu":
        return np.maximum(i[0], 0)
    if node.op_type == "BatchNormalization":
        return ((i[0] - i[3]) / np.sqrt(i[4] + np.float32(a["epsilon"])) * i[1] + i[2]).astype(np.float32)
    raise SystemExit(f"{node.op_type} is not known here")


def main():
    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    graph = onnx.load(str(path)).graph
    values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    given = next(i for i in graph.input if i.name not in values)
    first = next(n for n in graph.node if n.op_type == "Quant" and n.input[0] == given.name)
    shape = [d.dim_value for d in given.type.tensor_type.shape.dim][1:]
    scale = float(values[first.input[1]])
    x = (np.random.default_rng(1).normal(0, 40, (2000, *shape)) * scale).astype(np.float32)
    values[given.name] = x
    for node in graph.node:
        attributes = {t.name: helper.get_attribute_value(t) for t in node.attribute}
        values[node.output[0]] = compute(node, [values[name] for name in node.input], attributes)
    shutil.copy(path, folder / path.name)
    out = folder / path.stem
    out.mkdir(exist_ok=True)
    np.moveaxis(x, 1, -1).astype(np.float32).tofile(out / "x.f32")
    values[graph.output[0].name].astype(np.float32).tofile(out / "y.f32")


main()
