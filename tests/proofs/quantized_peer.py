#!/usr/bin/env python3
"""Networks that ONNX Runtime quantizes, and the codes that its integer kernels compute, for `scripts/prove quantized`.

usage: quantized_peer.py DATA FOLDER [NETWORK...]

DATA has the four IDX files of MNIST or Fashion-MNIST. Needs torch 2.6, onnx 1.17 and onnxruntime 1.21 with its
quantization tools, as Debian 13 has them. Trains four of the examples' networks for an epoch, exports them, quantizes
them as QDQ and as QOperator, and runs each file on the first 2,000 test images. For each it writes FOLDER/NAME.onnx,
and FOLDER/NAME with the codes of each quantizer, channels last, and `list`, which names them with their number of codes
for one image.
"""
import gzip
import os
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.reference  # before onnxruntime: Debian's builds share one registry
import onnxruntime as ort
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

DATA, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
IMAGES = 2000
GIVES_CODES = {"QuantizeLinear", "QLinearConv", "QLinearMatMul", "QGemm", "QLinearAdd", "QLinearAveragePool",
               "QLinearGlobalAveragePool", "MaxPool"}


def idx(name):
    data = gzip.open(DATA / (name + ".gz")).read() if (DATA / (name + ".gz")).exists() else (DATA / name).read_bytes()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)


def images(name):
    return (idx(name).astype(np.float32) / np.float32(255))[:, None]


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                         nn.Linear(128, 10))


def bncnn():
    def block(i, o):
        return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(1, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(64 * 9, 10))


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return F.relu(self.branch(x) + x)


def resnet():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         Residual(16), nn.MaxPool2d(2), Residual(16), nn.AvgPool2d(7), nn.Flatten(), nn.Linear(16, 10))


def ds_cnn():
    layers = [nn.Conv2d(1, 64, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                   nn.Conv2d(64, 64, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Reader(CalibrationDataReader):
    def __init__(self, x):
        self.batches = iter([{"x": x[i:i + 64]} for i in range(0, len(x), 64)])

    def get_next(self):
        return next(self.batches, None)


def train(net, x, labels):
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    net.train()
    order = torch.randperm(len(x))
    for i in range(0, len(x), 64):
        chosen = order[i:i + 64]
        optimizer.zero_grad()
        F.cross_entropy(net(x[chosen]), labels[chosen]).backward()
        optimizer.step()
    net.eval()


def dump(path, x):
    model = onnx.load(str(path))
    initializers = {tensor.name for tensor in model.graph.initializer}
    quantized = {node.output[0] for node in model.graph.node
                 if node.op_type in GIVES_CODES and node.input[0] not in initializers}
    if not any(node.op_type.startswith("QLinear") for node in model.graph.node):
        quantized -= {node.output[0] for node in model.graph.node if node.op_type == "MaxPool"}
    names = [node.output[0] for node in model.graph.node if node.output[0] in quantized]
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = [np.concatenate(parts) for parts in
               zip(*(session.run(names, {"x": x[i:i + 100]}) for i in range(0, len(x), 100)))]
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    lines = []
    for i, (name, codes) in enumerate(zip(names, results)):
        if codes.ndim == 4:
            codes = codes.transpose(0, 2, 3, 1)
        codes.tofile(folder / f"{i}.u8")
        lines.append(f"{i}.u8 {name.replace(' ', '_')} {codes[0].size}\n")
    (folder / "list").write_text("".join(lines))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    FOLDER.mkdir(exist_ok=True)
    x, labels = torch.tensor(images("train-images-idx3-ubyte")), torch.tensor(idx("train-labels-idx1-ubyte")).long()
    test = images("t10k-images-idx3-ubyte")[:IMAGES]
    makers = {"mlp": (mlp, 60000), "bncnn": (bncnn, 20000), "resnet": (resnet, 12800), "ds_cnn": (ds_cnn, 6400)}
    for name in sys.argv[3:] or makers:
        make, count = makers[name]
        net = make()
        train(net, x[:count], labels[:count])
        plain, ready = str(FOLDER / "plain.tmp"), str(FOLDER / "ready.tmp")
        torch.onnx.export(net, (x[:1],), plain, input_names=["x"], output_names=["y"], opset_version=17,
                          dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, dynamo=False)
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        for kind in ("QDQ", "QOperator"):
            path = FOLDER / f"{name}_{kind.lower()}.onnx"
            quantize_static(ready, str(path), Reader(x[:512].numpy()), quant_format=getattr(QuantFormat, kind),
                            per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
            dump(path, test)
        os.remove(plain)
        os.remove(ready)
        print(name, flush=True)


main()
