#!/usr/bin/env python3
"""Small quantized networks as exporters write them, and the codes that the exporter's runtime computes.

usage: make_quantized_onnx.py [FOLDER]
       make_quantized_onnx.py --guide shapes.onnx shapes_qdq.onnx

Writes FOLDER/quantized/NAME.onnx and FOLDER/quantized/codes.json. FOLDER is this folder by default. With --guide it
quantizes the network of docs/guide instead, calibrated on images like those of docs/guide/shapes.hpp. Needs torch 2.6,
onnx 1.17 and onnxruntime 1.21 with its quantization tools, as Debian 13 has them. Each case has an input x (channels
last) and the results y: of files with QuantizeLinear as ONNX Runtime's integer kernels compute them, of files with
Quant by the rules of Quant in numpy.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.reference  # before onnxruntime: Debian's builds share one registry
import onnxruntime as ort
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

rng = np.random.default_rng(7)


def session(model):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Images(nn.Module):
    """Convolutions, a depthwise one, a sum, pools and a linear layer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())
        self.depthwise = nn.Sequential(nn.Conv2d(6, 6, 3, padding=1, groups=6), nn.ReLU6())
        self.second = nn.Conv2d(6, 6, 1)
        self.classify = nn.Linear(6 * 4, 5)

    def forward(self, x):
        x = F.max_pool2d(self.first(x), 2)
        x = F.relu(x + self.second(self.depthwise(x)))
        # The mean of an odd number of codes is no tie, which ONNX Runtime rounds to the even code.
        return self.classify(torch.flatten(F.avg_pool2d(x, 3), 1))


class Functions(nn.Module):
    """Tables, a product, a concatenation and a global mean."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(2, 4, 3, stride=2)
        self.b = nn.Conv2d(2, 4, 3, stride=2)
        self.c = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        a = self.a(x)
        b = F.leaky_relu(self.b(x), 0.1)
        x = self.c(torch.cat([a * torch.sigmoid(a), b], 1))
        return torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)


def export(net, x, path, opset=17):
    torch.onnx.export(net, (x,), str(path), opset_version=opset, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, dynamo=False)


class Reader(CalibrationDataReader):
    def __init__(self, x):
        self.batches = iter([{"x": x}])

    def get_next(self):
        return next(self.batches, None)


def runtime_cases(folder):
    torch.manual_seed(3)
    for name, net, size in (("images", Images(), 12), ("functions", Functions(), 8)):
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                with torch.no_grad():
                    module.running_mean.uniform_(-0.2, 0.2)
                    module.running_var.uniform_(0.5, 2)
        net.eval()
        many = torch.rand(64, 2, size, size) * 1.5 - 0.5
        with tempfile.TemporaryDirectory() as temporary:
            plain = str(Path(temporary) / "plain.onnx")
            export(net, many[:1], plain)
            ready = str(Path(temporary) / "ready.onnx")
            quant_pre_process(plain, ready, skip_symbolic_shape=True)
            kinds = {
                "qdq": dict(quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                            weight_type=QuantType.QInt8, per_channel=True),
                "qoperator": dict(quant_format=QuantFormat.QOperator, activation_type=QuantType.QUInt8,
                                  weight_type=QuantType.QInt8, per_channel=True),
                "int8": dict(quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt8,
                             weight_type=QuantType.QInt8, per_channel=False,
                             extra_options={"ActivationSymmetric": name == "images"}),
            }
            for kind, options in kinds.items():
                path = folder / f"ort_{name}_{kind}.onnx"
                quantize_static(ready, str(path), Reader(many.numpy()), **options)
                model = onnx.load(str(path))
                x = many[:5].numpy()
                yield path.stem, model, x, session(model).run(None, {"x": x})[0]


def torch_case():
    """FX graph mode, as PyTorch exports it: QuantizeLinear of weights, biases in floats."""
    import torch.ao.quantization as tq
    from torch.ao.quantization import quantize_fx

    torch.manual_seed(5)
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)).eval()
    many = torch.rand(64, 2, 8, 8)
    torch.backends.quantized.engine = "onednn"
    prepared = quantize_fx.prepare_fx(net, tq.get_default_qconfig_mapping("onednn"), (many[:1],))
    prepared(many)
    converted = quantize_fx.convert_fx(prepared)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "torch.onnx"
        export(converted, many[:1], path)
        model = onnx.load(str(path))
    x = many[:8].numpy()
    return "torch_fx", model, x, session(model).run(None, {"x": x})[0]


def const(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def graph(nodes, inits, shape, out, domain=None, opset=17):
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", *out])], inits)
    sets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(g, opset_imports=sets, ir_version=8)


def qcdq_case():
    """Brevitas's QCDQ: Clip after QuantizeLinear for 4 and 3 bits."""
    w1 = rng.normal(0, 0.4, (8, 12)).astype(np.float32)
    w2 = rng.normal(0, 0.4, (8, 5)).astype(np.float32)
    b1 = rng.normal(0, 0.2, 8).astype(np.float32)
    n = helper.make_node
    nodes = [
        n("QuantizeLinear", ["x", "sx", "zx"], ["x_q"]), n("DequantizeLinear", ["x_q", "sx", "zx"], ["x_d"]),
        n("QuantizeLinear", ["layer1.weight", "s1", "z1"], ["w1_q"], axis=0),
        n("Clip", ["w1_q", "lo4", "hi4"], ["w1_c"]), n("DequantizeLinear", ["w1_c", "s1", "z1"], ["w1_d"], axis=0),
        n("Gemm", ["x_d", "w1_d", "b1"], ["h"], transB=1), n("Relu", ["h"], ["h_r"]),
        n("QuantizeLinear", ["h_r", "sh", "zu"], ["h_q"]), n("Clip", ["h_q", "lo3", "hi3"], ["h_c"]),
        n("DequantizeLinear", ["h_c", "sh", "zu"], ["h_d"]),
        n("QuantizeLinear", ["layer2.weight", "s2", "z8"], ["w2_q"]), n("Clip", ["w2_q", "lo4", "hi4"], ["w2_c"]),
        n("DequantizeLinear", ["w2_c", "s2", "z8"], ["w2_d"]),
        n("MatMul", ["h_d", "w2_d"], ["m"]), n("Add", ["m", "b2"], ["m_b"]),
        n("QuantizeLinear", ["m_b", "sy", "zx"], ["y_q"]), n("DequantizeLinear", ["y_q", "sy", "zx"], ["y"]),
    ]
    inits = [const("layer1.weight", w1), const("layer2.weight", w2), const("b1", b1), const("b2", [0.5, -0.25, 0, 1, -1]),
             const("sx", 1 / 127), const("zx", 0, np.int8), const("s1", np.abs(w1).max(1) / 7),
             const("z1", np.zeros(8), np.int8), const("lo4", -7, np.int8), const("hi4", 7, np.int8),
             const("sh", 0.25), const("zu", 0, np.uint8), const("lo3", 0, np.uint8), const("hi3", 7, np.uint8),
             const("s2", np.abs(w2).max() / 7), const("z8", 0, np.int8), const("sy", 0.0625)]
    model = graph(nodes, inits, [12], [5])
    x = rng.uniform(-1, 1, (8, 12)).astype(np.float32)
    return "qcdq", model, x, session(model).run(None, {"x": x})[0]


def quant(x, scale, zero, bits, signed, narrow):
    """The rules of QONNX's Quant."""
    low = (-(2 ** (bits - 1)) + (1 if narrow else 0)) if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    q = np.clip(np.round((x / scale).astype(np.float32)) + zero, low, high)
    return ((q - zero) * scale).astype(np.float32)


def qonnx_case():
    """Quant with 3 bits and a batch norm between the product and the next Quant, BipolarQuant of weights."""
    n = helper.make_node
    d = "onnx.brevitas"
    w1 = rng.normal(0, 0.5, (6, 9)).astype(np.float32)
    s1 = (np.abs(w1).max(1, keepdims=True) / 3).astype(np.float32)
    w2 = rng.normal(0, 0.5, (6, 4)).astype(np.float32)
    gamma, beta = rng.uniform(0.5, 1.5, 6) * np.array([1, -1, 1, 1, 1, 1]), rng.normal(0, 0.3, 6)
    mean, var = rng.normal(0, 0.3, 6), rng.uniform(0.5, 2, 6)
    gamma, beta, mean, var = (v.astype(np.float32) for v in (gamma, beta, mean, var))
    attributes = dict(domain=d, rounding_mode="ROUND")
    nodes = [
        n("Quant", ["x", "sx", "zero", "b8"], ["x_q"], signed=1, narrow=0, **attributes),
        n("Quant", ["fc1.weight", "s1", "zero", "b3"], ["w1_q"], signed=1, narrow=1, **attributes),
        n("Transpose", ["w1_q"], ["w1_t"], perm=[1, 0]), n("MatMul", ["x_q", "w1_t"], ["h"]),
        n("BatchNormalization", ["h", "gamma", "beta", "mean", "var"], ["h_n"], epsilon=1e-5), n("Relu", ["h_n"], ["h_r"]),
        n("Quant", ["h_r", "sh", "zero", "b3"], ["h_q"], signed=0, narrow=0, **attributes),
        n("BipolarQuant", ["fc2.weight", "s2"], ["w2_q"], domain=d), n("MatMul", ["h_q", "w2_q"], ["y"]),
    ]
    inits = [const("fc1.weight", w1), const("fc2.weight", w2), const("s1", s1), const("gamma", gamma), const("beta", beta),
             const("mean", mean), const("var", var), const("sx", 1 / 64), const("zero", 0), const("b8", 8),
             const("b3", 3), const("sh", 1 / 7), const("s2", 0.5)]
    model = graph(nodes, inits, [9], [4], d)
    x = rng.uniform(-1, 1, (8, 9)).astype(np.float32)
    h = quant(x, np.float32(1 / 64), 0, 8, True, False) @ quant(w1, s1, 0, 3, True, True).T
    h = np.maximum((h - mean) / np.sqrt(var + 1e-5) * gamma + beta, 0)
    h = quant(h, np.float32(1 / 7), 0, 3, False, False)
    return "qonnx", model, x, h @ np.where(w2 >= 0, 0.5, -0.5).astype(np.float32)


def shapes(count):
    """Images as docs/guide/shapes.hpp draws them, of other random numbers."""
    pixels = rng.integers(0, 110, (count, 1, 16, 16))
    for image in pixels:
        y, x = np.mgrid[0:8, 0:8]
        lit = [(y == 0) | (x == 0) | (y == 7) | (x == 7), (y == 4) | (x == 4), (y == x) | (y + x == 7), y >= 0]
        top, left = rng.integers(0, 8, 2)
        image[0, top:top + 8, left:left + 8] += lit[rng.integers(4)] * rng.integers(45, 145)
    return (pixels / 255).astype(np.float32)


def guide(plain, quantized):
    with tempfile.TemporaryDirectory() as temporary:
        ready = str(Path(temporary) / "ready.onnx")
        quant_pre_process(plain, ready, skip_symbolic_shape=True)

        class Shapes(Reader):
            def __init__(self):
                self.batches = iter([{"input": shapes(320)}])

        quantize_static(ready, quantized, Shapes(), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def dump(x):
    x = np.moveaxis(x, 1, -1) if x.ndim > 2 else x
    return {"shape": list(x.shape), "values": [float(f"{v:.9g}") for v in x.reshape(-1).tolist()]}


def main():
    if sys.argv[1:2] == ["--guide"]:
        guide(*sys.argv[2:4])
        return
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent) / "quantized"
    folder.mkdir(exist_ok=True)
    cases = {}
    for name, model, x, y in [*runtime_cases(folder), torch_case(), qcdq_case(), qonnx_case()]:
        onnx.save(model, str(folder / f"{name}.onnx"))
        cases[name] = {"x": dump(x), "y": dump(y)}
    lines = [json.dumps(name) + ": " + json.dumps(case) for name, case in cases.items()]
    (folder / "codes.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
