"""Writes operations.json and signals.json: values and gradients from PyTorch, which the tests
compare with.

    python3 make_vectors.py [FOLDER]

Made with PyTorch 2.6 (Debian 13: python3-torch), except for the histograms. PyTorch 1.13 (Debian
12) made these, and gives the same values for the rest. Operations, losses and optimizers run in
float64, and their results are rounded to float32 once, so that a test finds the error of one
float32 computation, not of two. Inputs are multiples of 1/32, whose sums and products are exact,
drawn by Python's own generator. Images are [N, H, W, C] and convolution weights [O, KH, KW, I];
this script converts them.
operations.json holds

  operations    one object for each case: op, attributes, inputs, y, grad_y, the gradients of
                sum(y * grad_y) by inputs, and other values that changed ("after")
  optimizers    parameter, gradients of the steps, the parameter after each step
  averages      a parameter after each step, and its exponential average
  clip          gradients before and after clip_grad_norm_, and the norm
  fake_quantize x, scale, zero_point, qmin, qmax, axis (-1: per tensor), y, and where the gradient
                passes. All scales are powers of two, so that x / scale and PyTorch's
                x * (1 / scale) are the same number; some quotients are ties. Some of PyTorch's
                kernels add the zero point before they round and others after, so a case is
                written only if both give the same.
  lsq           a learned scale, with the factor of its gradient (grad_factor) and zero point 0
                (otherwise PyTorch would learn it, too), the gradients of sum(y * grad_y) by x
                and scale
  observers     batches, the range after each, and the parameters at the end. PyTorch's symmetric
                scheme uses the full range: scale = 2 max|x| / (qmax - qmin).
  histograms    of 20,000 values: bin i of `counts` counts the values in
                [(first + i) width, (first + i + 1) width); smallest and largest value. For each
                type, the scale and zero point that the search of PyTorch's HistogramObserver finds.
                entropy: the range of least divergence by the published procedure.

signals.json holds only operations: those on signals, and convolutions with a dilation. Signals are
[N, L, C] and their weights [O, K, I].
"""

import json
import math
import random
import sys
from pathlib import Path

import torch
from torch.ao.quantization.observer import (
    HistogramObserver, MinMaxObserver, MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver, PerChannelMinMaxObserver)

F = torch.nn.functional
generator = random.Random(2026)


def draw(*shape, low=-64, high=64):
    """Multiples of 1/32 in [low / 32, high / 32)."""
    count = 1
    for extent in shape:
        count *= extent
    return torch.tensor([generator.randrange(low, high) / 32 for _ in range(count)],
                        dtype=torch.float64).reshape(shape)


def number(value):
    """The value as a float32, with the fewest digits that identify it."""
    value = float(torch.tensor(value, dtype=torch.float32))
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if float(torch.tensor(float(text), dtype=torch.float32)) == value:
            break
    return float(text) if float(text) != int(float(text)) else int(float(text))


def dump(tensor):
    tensor = tensor.detach()
    return {"shape": list(tensor.shape), "values": [number(v) for v in tensor.reshape(-1).tolist()]}


def nchw(x):
    return x.permute(0, 3, 1, 2)


def nhwc(x):
    return x.permute(0, 2, 3, 1).contiguous()


operations = []


def operation(op, inputs, compute, attributes=None, constants=None, after=None):
    """compute(inputs) returns y, both in our layout; the inputs require gradients."""
    leaves = {name: x.clone().requires_grad_(True) for name, x in inputs.items()}
    y = compute(*leaves.values())
    grad_y = draw(*y.shape)
    gradients = torch.autograd.grad((y * grad_y).sum(), list(leaves.values()))
    case = {"op": op, "attributes": attributes or {},
            "inputs": {name: dump(x) for name, x in {**inputs, **(constants or {})}.items()},
            "y": dump(y), "grad_y": dump(grad_y),
            "grads": {name: dump(g) for name, g in zip(leaves, gradients)}}
    if after:
        case["after"] = {name: dump(x) for name, x in after.items()}
    operations.append(case)


def elementwise():
    positive = {"low": 16, "high": 64}
    for op, compute in {"add": torch.add, "sub": torch.sub, "mul": torch.mul,
                        "div": torch.div}.items():
        run = lambda a, b, compute=compute: compute(a, b)
        operation(op, {"a": draw(3, 7), "b": draw(3, 7, **positive)}, run)
        operation(op, {"a": draw(2, 1, 5), "b": draw(3, 1, **positive)}, run)
    operation("relu", {"x": draw(5, 7)}, torch.relu)
    operation("relu6", {"x": draw(5, 7, low=-64, high=300)}, F.relu6)
    operation("sigmoid", {"x": draw(5, 7, low=-200, high=200)}, torch.sigmoid)
    operation("tanh", {"x": draw(5, 7, low=-100, high=100)}, torch.tanh)
    operation("softmax", {"x": draw(4, 11)}, lambda x: F.softmax(x, -1))
    operation("log_softmax", {"x": draw(4, 11)}, lambda x: F.log_softmax(x, -1))


def reductions_and_shapes():
    operation("sum", {"x": draw(3, 4, 5)}, torch.sum)
    operation("sum", {"x": draw(3, 4, 5)}, lambda x: x.sum(1), {"axis": 1, "keepdim": False})
    operation("mean", {"x": draw(3, 4, 5)}, torch.mean)
    operation("mean", {"x": draw(3, 4, 5)}, lambda x: x.mean(-1, keepdim=True),
              {"axis": -1, "keepdim": True})
    operation("reshape", {"x": draw(3, 4, 2)}, lambda x: x.reshape(2, -1), {"shape": [2, -1]})
    operation("flatten", {"x": draw(3, 4, 2)}, lambda x: x.flatten(1))
    operation("transpose", {"x": draw(2, 3, 4)}, lambda x: x.permute(2, 0, 1), {"perm": [2, 0, 1]})
    operation("pad", {"x": draw(2, 2, 3, 2)}, lambda x: F.pad(x, (1, 0, 0, 2, 3, 1), value=0.5),
              {"before": [0, 3, 0, 1], "after": [0, 1, 2, 0], "value": 0.5})
    operation("concat", {"a": draw(2, 3, 2), "b": draw(2, 1, 2)},
              lambda a, b: torch.cat([a, b], 1), {"axis": 1})


def products():
    operation("matmul", {"a": draw(4, 7), "b": draw(7, 3)}, torch.matmul)
    operation("matmul", {"a": draw(2, 3, 5), "b": draw(2, 5, 4)}, torch.matmul)
    operation("linear", {"x": draw(4, 17), "weight": draw(9, 17), "bias": draw(9)}, F.linear)
    operation("linear", {"x": draw(2, 3, 5), "weight": draw(4, 5)}, F.linear)

    def conv2d(x, weight, bias, stride=(1, 1), padding=(0, 0), groups=1):
        attributes = {"stride": list(stride), "padding": list(padding), "groups": groups}
        inputs = {"x": x, "weight": weight}
        if bias is not None:
            inputs["bias"] = bias
        operation("conv2d", inputs,
                  lambda x, weight, bias=None: nhwc(
                      F.conv2d(nchw(x), nchw(weight), bias, stride, padding, 1, groups)),
                  attributes)

    conv2d(draw(2, 5, 6, 3), draw(4, 3, 3, 3), draw(4), padding=(1, 1))
    conv2d(draw(2, 6, 5, 1), draw(5, 3, 3, 1), draw(5))
    conv2d(draw(1, 7, 6, 2), draw(3, 3, 2, 2), draw(3), stride=(2, 1), padding=(1, 0))
    conv2d(draw(2, 5, 4, 4), draw(6, 3, 3, 2), draw(6), padding=(1, 2), groups=2)
    conv2d(draw(2, 5, 5, 6), draw(6, 3, 3, 1), draw(6), stride=(2, 2), padding=(1, 1), groups=6)
    conv2d(draw(1, 4, 4, 3), draw(6, 2, 2, 1), None, groups=3)  # depthwise, two outputs per input
    conv2d(draw(2, 3, 3, 5), draw(4, 1, 1, 5), None)


def pooling():
    def pool(op, x, kernel, stride, padding):
        compute = {"max_pool2d": F.max_pool2d,
                   "avg_pool2d": lambda *a: F.avg_pool2d(*a, count_include_pad=False)}[op]
        operation(op, {"x": x}, lambda x: nhwc(compute(nchw(x), kernel, stride, padding)),
                  {"kernel": list(kernel), "stride": list(stride), "padding": list(padding)})

    for op in "max_pool2d", "avg_pool2d":
        pool(op, draw(2, 4, 6, 3), (2, 2), (2, 2), (0, 0))
        pool(op, draw(1, 7, 5, 2), (3, 2), (2, 1), (1, 1))
        pool(op, draw(1, 5, 5, 3, low=-3, high=3), (3, 3), (1, 1), (1, 1))  # many equal elements
    operation("global_avg_pool2d", {"x": draw(2, 3, 4, 5)},
              lambda x: nhwc(F.adaptive_avg_pool2d(nchw(x), 1)))


def norms():
    for training in True, False:
        x, gamma, beta = draw(3, 4, 2, 5), draw(5, low=16), draw(5)
        mean, variance = draw(5), draw(5, low=16)
        before = {"running_mean": mean.clone(), "running_variance": variance.clone()}
        operation("batch_norm", {"x": x, "gamma": gamma, "beta": beta},
                  lambda x, gamma, beta: nhwc(F.batch_norm(
                      nchw(x), mean, variance, gamma, beta, training, 0.25, 1e-3)),
                  {"training": training, "momentum": 0.25, "epsilon": 1e-3}, constants=before,
                  after={"running_mean": mean, "running_variance": variance})


def losses():
    labels = [3, 0, 6, 3]
    operation("cross_entropy", {"x": draw(4, 7)},
              lambda x: F.cross_entropy(x, torch.tensor(labels)), {"labels": labels})
    operation("mse_loss", {"x": draw(3, 5), "target": draw(3, 5)}, F.mse_loss)


def functions():
    wide = {"low": -200, "high": 200}
    operation("hard_sigmoid", {"x": draw(5, 7, **wide)}, F.hardsigmoid)
    operation("hard_swish", {"x": draw(5, 7, **wide)}, F.hardswish)
    operation("silu", {"x": draw(5, 7, **wide)}, F.silu)
    operation("gelu", {"x": draw(5, 7, **wide)}, F.gelu)
    operation("leaky_relu", {"x": draw(5, 7)}, lambda x: F.leaky_relu(x, 0.125), {"slope": 0.125})
    operation("elu", {"x": draw(5, 7)}, lambda x: F.elu(x, 0.75), {"alpha": 0.75})
    operation("exp", {"x": draw(5, 7)}, torch.exp)
    operation("square", {"x": draw(5, 7)}, torch.square)
    operation("abs", {"x": draw(5, 7)}, torch.abs)
    operation("clamp", {"x": draw(5, 7)}, lambda x: x.clamp(-0.5, 1.25),
              {"low": -0.5, "high": 1.25})
    # Kinks: zeros, and the bounds of clamp.
    operation("abs", {"x": draw(1, 5, low=-1, high=2)}, torch.abs)
    operation("leaky_relu", {"x": draw(1, 5, low=-1, high=2)}, lambda x: F.leaky_relu(x, 0.125),
              {"slope": 0.125})
    operation("elu", {"x": draw(1, 5, low=-1, high=2)}, lambda x: F.elu(x, 0.75), {"alpha": 0.75})
    operation("clamp", {"x": draw(1, 9, low=-2, high=3)}, lambda x: x.clamp(-0.03125, 0.0625),
              {"low": -0.03125, "high": 0.0625})
    for slope in draw(7), draw(1):
        operation("prelu", {"x": draw(5, 7), "slope": slope}, F.prelu)
    operation("prelu", {"x": draw(2, 3, 2, low=-1, high=2), "slope": draw(2)},
              lambda x, slope: F.prelu(x.movedim(-1, 1), slope).movedim(1, -1))


def batch_norm_of_rows():
    for training in True, False:
        x, gamma, beta = draw(6, 5), draw(5, low=16), draw(5)
        mean, variance = draw(5), draw(5, low=16)
        before = {"running_mean": mean.clone(), "running_variance": variance.clone()}
        operation("batch_norm", {"x": x, "gamma": gamma, "beta": beta},
                  lambda x, gamma, beta: F.batch_norm(
                      x, mean, variance, gamma, beta, training, 0.25, 1e-3),
                  {"training": training, "momentum": 0.25, "epsilon": 1e-3}, constants=before,
                  after={"running_mean": mean, "running_variance": variance})


def later_losses():
    labels = [3, 0, 6, 3]
    for smoothing, weighted in (0.125, False), (0.0, True), (0.25, True):
        attributes = {"labels": labels, "label_smoothing": smoothing}
        weight = None
        if weighted:
            weight = draw(7, low=8)
            attributes["class_weights"] = weight.tolist()
        operation("cross_entropy", {"x": draw(4, 7)},
                  lambda x: F.cross_entropy(x, torch.tensor(labels), weight,
                                            label_smoothing=smoothing), attributes)
    operation("binary_cross_entropy_with_logits",
              {"x": draw(3, 5, low=-200, high=200), "target": draw(3, 5, low=0, high=33)},
              F.binary_cross_entropy_with_logits)
    for delta in 0.75, 1.0:
        operation("huber_loss", {"x": draw(3, 5), "target": draw(3, 5)},
                  lambda x, target: F.huber_loss(x, target, delta=delta), {"delta": delta})
    operation("l1_loss", {"x": draw(3, 5), "target": draw(3, 5)}, F.l1_loss)
    operation("l1_loss", {"x": draw(7, low=-1, high=2), "target": draw(7, low=-1, high=2)},
              F.l1_loss)  # equal elements


def moves():
    operation("slice", {"x": draw(2, 7, 3)}, lambda x: x[:, 1:6:2],
              {"axis": 1, "begin": 1, "end": 6, "step": 2})
    operation("slice", {"x": draw(2, 3, 5)}, lambda x: x[..., -3:], {"axis": -1, "begin": -3})
    operation("slice", {"x": draw(2, 7, 3)}, lambda x: x[:, 1:6].flip(1)[:, ::2],
              {"axis": 1, "begin": 5, "end": 0, "step": -2})
    operation("upsample_nearest", {"x": draw(2, 3, 2, 3)},
              lambda x: nhwc(F.interpolate(nchw(x), scale_factor=(2, 3), mode="nearest")),
              {"scale": [2, 3]})
    operation("upsample_nearest", {"x": draw(2, 3, 4)},
              lambda x: F.interpolate(x.permute(0, 2, 1), scale_factor=3,
                                      mode="nearest").permute(0, 2, 1).contiguous(),
              {"scale": [3, 1]})


def factors():
    """Squeeze and excitation: a factor for each channel of each image, as second or first operand."""
    operation("mul", {"a": draw(2, 3, 2, 5), "b": draw(2, 1, 1, 5)}, lambda a, b: a * b)
    operation("mul", {"a": draw(2, 1, 3), "b": draw(2, 4, 3)}, lambda a, b: a * b)


def optimizer(kind, make, **options):
    parameter = draw(13).requires_grad_(True)
    case = {"optimizer": kind, "options": options, "parameter": dump(parameter),
            "gradients": [], "after": []}
    steps = make([parameter], **{{"learning_rate": "lr", "epsilon": "eps"}.get(k, k): v
                                 for k, v in options.items() if k not in ("beta1", "beta2")},
                 **({"betas": (options["beta1"], options["beta2"])}
                    if "beta1" in options else {}))
    for _ in range(4):
        parameter.grad = draw(13)
        case["gradients"].append(dump(parameter.grad))
        steps.step()
        case["after"].append(dump(parameter))
    return case


def optimizers():
    sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    betas = {"beta1": 0.875, "beta2": 0.9921875, "epsilon": 2.0 ** -20}
    return [
        optimizer("sgd", sgd, learning_rate=0.125),
        optimizer("sgd", sgd, learning_rate=0.125, momentum=0.75),
        optimizer("sgd", sgd, learning_rate=0.125, momentum=0.75, weight_decay=0.0625),
        optimizer("sgd", sgd, learning_rate=0.125, momentum=0.75, weight_decay=0.0625,
                  nesterov=True),
        optimizer("adam", adam, learning_rate=0.125, **betas),
        optimizer("adam", adam, learning_rate=0.125, weight_decay=0.0625, **betas),
        optimizer("adamw", adamw, learning_rate=0.125, weight_decay=0.0625, **betas)]


def later_optimizers():
    rmsprop = torch.optim.RMSprop
    options = {"learning_rate": 0.125, "alpha": 0.875, "epsilon": 2.0 ** -20}
    return [
        optimizer("rmsprop", rmsprop, **options),
        optimizer("rmsprop", rmsprop, momentum=0.75, weight_decay=0.0625, **options),
        optimizer("rmsprop", rmsprop, centered=True, **options),
        optimizer("rmsprop", rmsprop, centered=True, momentum=0.75, **options)]


def averages():
    model = torch.nn.ParameterList([draw(5)])
    average = torch.optim.swa_utils.AveragedModel(
        model, avg_fn=lambda average, new, _: 0.75 * average + 0.25 * new)
    case = {"decay": 0.75, "parameter": [], "average": []}
    for _ in range(4):
        model[0].data.copy_(draw(5))
        average.update_parameters(model)
        case["parameter"].append(dump(model[0]))
        case["average"].append(dump(average.module[0]))
    return [case]


def clip():
    parameters = [torch.zeros(5, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)]
    cases = []
    for max_norm in 1.0, 100.0:
        for parameter in parameters:
            parameter.grad = draw(*parameter.shape)
        before = [dump(p.grad) for p in parameters]
        norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        cases.append({"max_norm": max_norm, "norm": number(norm.item()), "before": before,
                      "after": [dump(p.grad) for p in parameters]})
    return cases


def codes_agree(x, scale, zero_point):
    """Whether rounding before and after adding the zero point gives the same codes."""
    ratio = x / scale
    return torch.equal(torch.round(ratio) + zero_point, torch.round(ratio + zero_point))


def fake_quantize():
    cases = []

    def write(x, scale, zero_point, axis, qmin, qmax):
        assert codes_agree(x, scale, zero_point)
        leaf = x.clone().requires_grad_(True)
        if axis < 0:
            y = torch.fake_quantize_per_tensor_affine(
                leaf, scale.item(), int(zero_point.item()), qmin, qmax)
        else:
            y = torch.fake_quantize_per_channel_affine(
                leaf, scale.reshape(-1), zero_point.reshape(-1).to(torch.int32), axis, qmin, qmax)
        mask = torch.autograd.grad(y.sum(), leaf)[0]
        cases.append({"x": dump(x), "scale": [number(v) for v in scale.reshape(-1).tolist()],
                      "zero_point": [int(v) for v in zero_point.reshape(-1).tolist()],
                      "axis": axis, "qmin": qmin, "qmax": qmax, "y": dump(y),
                      "mask": [int(v) for v in mask.reshape(-1).tolist()]})

    def per_tensor(x, scale, zero_point, qmin, qmax):
        write(x.float(), torch.tensor(scale), torch.tensor(float(zero_point)), -1, qmin, qmax)

    # With an even zero point, ties give the same code whether it is added before or after rounding.
    per_tensor(draw(61, low=-64, high=300), 2.0 ** -5, 0, 0, 255)
    per_tensor(draw(61, low=-300, high=300), 2.0 ** -4, 128, 0, 255)  # every other value is a tie
    per_tensor(draw(61, low=-300, high=300), 2.0 ** -4, 6, 0, 15)
    per_tensor(draw(61), 2.0 ** -5, 0, -127, 127)
    per_tensor(draw(61, low=-300, high=300), 2.0 ** -3, 0, -128, 127)
    per_tensor(draw(61), 2.0 ** -2, 0, -7, 7)
    per_tensor(draw(61), 1.0, 0, -1, 1)
    # An odd zero point, without ties: odd multiples of 1/32 at scale 1/8.
    per_tensor(draw(61, low=-32, high=32) * 2 + 1 / 32, 2.0 ** -3, 7, 0, 15)

    def per_channel(shape, axis, exponents, zero_points, qmin, qmax):
        view = [1] * len(shape)
        view[axis] = -1
        scale = torch.tensor([2.0 ** e for e in exponents]).reshape(view)
        zero = torch.tensor([float(z) for z in zero_points]).reshape(view)
        write(draw(*shape).float(), scale, zero, axis, qmin, qmax)

    per_channel((4, 3, 3, 2), 0, [-6, -5, -4, -3], [0, 0, 0, 0], -127, 127)
    per_channel((3, 9), 0, [-3, -2, -1], [0, 0, 0], -7, 7)
    per_channel((2, 4, 5), 2, [-6, -5, -4, -3, -2], [128, 0, 4, 250, 12], 0, 255)
    return cases


def lsq():
    cases = []
    for shape, axis, exponents, qmin, qmax in (
            ((37,), -1, [-3], -7, 7), ((37,), -1, [-4], 0, 15), ((37,), -1, [-5], -127, 127),
            ((37,), -1, [0], -1, 1), ((3, 11), 0, [-3, -2, -4], -7, 7)):
        # No x lies exactly at an end of the range. At scale 2 ** -5, all x are ties.
        x = (draw(*shape) + 1 / 64).float().requires_grad_(True)
        scale = torch.tensor([2.0 ** e for e in exponents]).requires_grad_(True)
        zero = torch.zeros(len(exponents))
        grad_y = draw(*shape).float()
        factor = (x.numel() / len(exponents) * qmax) ** -0.5
        if axis < 0:
            y = torch._fake_quantize_learnable_per_tensor_affine(
                x, scale, zero, qmin, qmax, factor)
        else:
            y = torch._fake_quantize_learnable_per_channel_affine(
                x, scale, zero, axis, qmin, qmax, factor)
        grad_x, grad_scale = torch.autograd.grad((y * grad_y).sum(), [x, scale])
        cases.append({"x": dump(x), "scale": [number(v) for v in scale.tolist()], "axis": axis,
                      "qmin": qmin, "qmax": qmax, "grad_factor": number(factor), "y": dump(y),
                      "grad_y": dump(grad_y), "grad_x": dump(grad_x),
                      "grad_scale": [number(v) for v in grad_scale.tolist()]})
    return cases


def observers():
    cases = []

    def observe(kind, observer, axis, shape, low=-64, high=64):
        case = {"observer": kind, "axis": axis, "qmin": observer.quant_min,
                "qmax": observer.quant_max, "scheme": "symmetric" if observer.qscheme in (
                    torch.per_tensor_symmetric, torch.per_channel_symmetric) else "affine",
                "batches": [], "min": [], "max": []}
        if "moving" in kind:
            case["constant"] = observer.averaging_constant
        for _ in range(3):
            batch = draw(*shape, low=low, high=high).float()
            observer(batch)
            case["batches"].append(dump(batch))
            case["min"].append([number(v) for v in observer.min_val.reshape(-1).tolist()])
            case["max"].append([number(v) for v in observer.max_val.reshape(-1).tolist()])
        scale, zero_point = observer.calculate_qparams()
        case["scale"] = [number(v) for v in scale.reshape(-1).tolist()]
        case["zero_point"] = [int(v) for v in zero_point.reshape(-1).tolist()]
        cases.append(case)

    unsigned = {"dtype": torch.quint8, "quant_min": 0, "quant_max": 255}
    signed = {"dtype": torch.qint8, "quant_min": -128, "quant_max": 127}
    observe("min_max", MinMaxObserver(**unsigned), -1, (5, 7))
    observe("min_max", MinMaxObserver(**unsigned), -1, (5, 7), low=3, high=90)
    observe("min_max", MinMaxObserver(qscheme=torch.per_tensor_symmetric, **signed), -1, (5, 7))
    observe("moving_average", MovingAverageMinMaxObserver(**unsigned), -1, (5, 7))
    observe("moving_average", MovingAverageMinMaxObserver(averaging_constant=0.25, **unsigned),
            -1, (5, 7))
    observe("min_max", PerChannelMinMaxObserver(
        ch_axis=0, qscheme=torch.per_channel_symmetric, **signed), 0, (4, 9))
    observe("min_max", PerChannelMinMaxObserver(
        ch_axis=2, qscheme=torch.per_channel_affine, **unsigned), 2, (2, 3, 4))
    observe("moving_average", MovingAveragePerChannelMinMaxObserver(
        averaging_constant=0.25, ch_axis=0, qscheme=torch.per_channel_affine, **unsigned),
        0, (4, 9))
    return cases


TYPES = [(bits, signed) for bits in (8, 4, 2) for signed in (False, True)]  # affine, symmetric


def torch_choice(low, high, counts, bits, signed):
    """The parameters that PyTorch's HistogramObserver chooses for these counts of bins over [low, high]."""
    observer = HistogramObserver(
        bins=len(counts), dtype=torch.qint8 if signed else torch.quint8,
        qscheme=torch.per_tensor_symmetric if signed else torch.per_tensor_affine,
        quant_min=-2 ** (bits - 1) if signed else 0,
        quant_max=2 ** (bits - 1) - 1 if signed else 2 ** bits - 1)
    observer.dst_nbins = 2 ** bits  # its default, 256, is worse below 8 bits
    observer.min_val.copy_(torch.tensor(float(low)))
    observer.max_val.copy_(torch.tensor(float(high)))
    observer.histogram.copy_(torch.tensor(counts, dtype=torch.float32))
    scale, zero_point = observer.calculate_qparams()
    return {"bits": bits, "signed": signed, "scale": number(scale.item()),
            "zero_point": int(zero_point.item())}


def divergence(counts, begin, end, levels):
    """Divergence of bins [begin, end), step by step as in "8-bit Inference with TensorRT" (GTC 2017)."""
    reference = counts[begin:end]
    reference[0] += sum(counts[:begin])
    reference[-1] += sum(counts[end:])
    window = counts[begin:end]
    of_level = [b * levels // len(window) for b in range(len(window))]
    quantized = [0] * levels
    filled = [0] * levels
    for count, level in zip(window, of_level):
        quantized[level] += count
        filled[level] += count > 0
    candidate = [quantized[level] / filled[level] if count else 0
                 for count, level in zip(window, of_level)]
    p_sum, q_sum = sum(reference), sum(candidate)
    result = 0.0
    for p, q in zip(reference, candidate):
        if p and not q:
            return math.inf
        if p:
            result += p / p_sum * math.log((p / p_sum) / (q / q_sum))
    return result


def entropy_choice(case, bits, signed):
    first, counts = case["first"], case["counts"]
    end = first + len(counts)
    if case["min"] >= 0:
        # Only codes from 0 on are used. An unsigned type has no others.
        levels = 2 ** (bits - 1) if signed else 2 ** bits
        whole = [0] * first + counts
        windows = {i: (0, i) for i in range(levels, end + 1)}
    else:
        levels = 2 ** bits
        reach = max(-first, end)
        whole = [0] * (reach + first) + counts + [0] * (reach - end)
        windows = {i: (reach - i, reach + i) for i in range(levels // 2, reach + 1)}
    divergences = {i: divergence(whole, *window, levels) for i, window in windows.items()}
    least = min(divergences.values())
    best = max(i for i, value in divergences.items() if value == least)
    # The choice must not depend on rounding.
    others = [value for i, value in divergences.items() if i != best]
    assert all(value - least > 1e-9 for value in others), (case["name"], bits, signed)
    threshold = best * case["width"]
    return {"bits": bits, "signed": signed, "min": number(max(case["min"], -threshold)),
            "max": number(min(case["max"], threshold))}


BINS = 2048
VALUES = 20000


def histograms():
    draws = random.Random(7)
    normal = lambda mean=0.0, sigma=1.0: draws.gauss(mean, sigma)
    laplace = lambda: draws.expovariate(1.0) * draws.choice((-1, 1))

    # The ends of a distribution are a power of two apart, so that its bins begin at multiples of their width.
    distributions = {
        "normal": (-4, 4, normal),
        "narrow normal": (-4, 4, lambda: normal(sigma=0.25)),
        "half-normal": (0, 4, lambda: abs(normal())),
        "ReLU of a normal": (0, 4, lambda: max(normal(), 0.0)),
        "Laplace": (-8, 8, laplace),
        "heavy tails": (-64, 64, lambda: normal() / max(abs(normal()), 0.01)),
        "outliers": (-8, 8, lambda: normal(sigma=0.1) if draws.random() < 0.9995 else
                     draws.uniform(-8, 8)),
        "one-sided with an outlier": (0, 32, lambda: max(normal(), 0.0)),
        "log-normal": (0, 16, lambda: draws.lognormvariate(0.0, 0.75)),
        "uniform": (-1, 1, lambda: draws.uniform(-1, 1)),
        "uniform from 0": (0, 1, draws.random),
        "bimodal": (-2, 2, lambda: normal(draws.choice((-1, 1)), 0.1)),
        "uneven sides": (-1, 3, lambda: normal(0.75, 0.5)),
        "negative": (-4, 0, lambda: -abs(normal())),
        "far from 0": (2, 4, lambda: normal(3.0, 0.25)),
    }
    cases = []
    for name, (low, high, draw_one) in distributions.items():
        # The largest value lies inside the last bin, not on its edge.
        largest = torch.nextafter(torch.tensor(float(high)), torch.tensor(-math.inf)).item()
        values = torch.tensor([draw_one() for _ in range(VALUES - 2)]).clamp(low, largest).tolist()
        values += [low, largest]
        width = (high - low) / BINS
        counts = [0] * BINS
        for value in values:
            counts[math.floor(value / width) - int(low / width)] += 1
        cases.append({"name": name, "width": width, "first": int(low / width), "min": number(low),
                      "max": number(largest), "counts": counts,
                      "choices": [torch_choice(low, high, counts, *of) for of in TYPES]})
    # All values are equal, so bins of any width are right.
    cases.append({"name": "all equal", "width": 2.0 ** -11, "first": 1536, "min": 0.75, "max": 0.75,
                  "counts": [VALUES],
                  "choices": [torch_choice(0.75, 0.75, [VALUES], *of) for of in TYPES]})
    for case in cases:
        case["entropy"] = [entropy_choice(case, *of) for of in TYPES[:4]]
    return cases


def ncl(x):
    return x.permute(0, 2, 1)


def nlc(x):
    return x.permute(0, 2, 1).contiguous()


def signals():
    def conv1d(x, weight, bias, stride=1, padding=0, groups=1, dilation=1):
        inputs = {"x": x, "weight": weight}
        if bias is not None:
            inputs["bias"] = bias
        operation("conv1d", inputs,
                  lambda x, weight, bias=None: nlc(
                      F.conv1d(ncl(x), ncl(weight), bias, stride, padding, dilation, groups)),
                  {"stride": stride, "padding": padding, "groups": groups, "dilation": dilation})

    conv1d(draw(2, 7, 3), draw(4, 3, 3), draw(4), padding=1)
    conv1d(draw(2, 9, 1), draw(5, 4, 1), draw(5), stride=2)
    conv1d(draw(1, 11, 4), draw(6, 3, 2), draw(6), stride=3, padding=2, groups=2)
    conv1d(draw(2, 9, 2), draw(3, 3, 2), None, dilation=3)
    conv1d(draw(2, 12, 5), draw(4, 4, 5), draw(4), stride=2, padding=5, dilation=3)
    conv1d(draw(1, 13, 6), draw(4, 3, 3), draw(4), stride=4, padding=2, groups=2, dilation=2)
    conv1d(draw(2, 8, 5), draw(5, 3, 1), draw(5), padding=1, groups=5)  # depthwise
    conv1d(draw(2, 13, 17), draw(17, 3, 1), draw(17), stride=2, padding=3, groups=17, dilation=2)
    conv1d(draw(1, 6, 3), draw(6, 2, 1), None, groups=3, dilation=4)  # two outputs per input
    conv1d(draw(3, 1, 2), draw(2, 1, 2), draw(2))
    conv1d(draw(1, 1, 1), draw(1, 3, 1), None, padding=1)

    def pool(op, x, kernel, stride, padding):
        compute = {"max_pool1d": F.max_pool1d,
                   "avg_pool1d": lambda *a: F.avg_pool1d(*a, count_include_pad=False)}[op]
        operation(op, {"x": x}, lambda x: nlc(compute(ncl(x), kernel, stride, padding)),
                  {"kernel": kernel, "stride": stride, "padding": padding})

    for op in "max_pool1d", "avg_pool1d":
        pool(op, draw(2, 6, 3), 2, 2, 0)
        pool(op, draw(1, 9, 5), 4, 3, 2)
        pool(op, draw(1, 7, 3, low=-3, high=3), 3, 1, 1)  # many equal elements
    operation("global_avg_pool1d", {"x": draw(2, 7, 5)},
              lambda x: nlc(F.adaptive_avg_pool1d(ncl(x), 1)))
    operation("global_max_pool1d", {"x": draw(2, 7, 5)},
              lambda x: nlc(F.adaptive_max_pool1d(ncl(x), 1)))

    for training in True, False:
        x, gamma, beta = draw(3, 4, 5), draw(5, low=16), draw(5)
        mean, variance = draw(5), draw(5, low=16)
        before = {"running_mean": mean.clone(), "running_variance": variance.clone()}
        operation("batch_norm", {"x": x, "gamma": gamma, "beta": beta},
                  lambda x, gamma, beta: nlc(F.batch_norm(
                      ncl(x), mean, variance, gamma, beta, training, 0.25, 1e-3)),
                  {"training": training, "momentum": 0.25, "epsilon": 1e-3}, constants=before,
                  after={"running_mean": mean, "running_variance": variance})


def dilated_images():
    def conv2d(x, weight, bias, stride, padding, groups, dilation):
        inputs = {"x": x, "weight": weight}
        if bias is not None:
            inputs["bias"] = bias
        operation("conv2d", inputs,
                  lambda x, weight, bias=None: nhwc(
                      F.conv2d(nchw(x), nchw(weight), bias, stride, padding, dilation, groups)),
                  {"stride": list(stride), "padding": list(padding), "groups": groups,
                   "dilation": list(dilation)})

    conv2d(draw(2, 7, 6, 3), draw(4, 3, 3, 3), draw(4), (1, 1), (2, 2), 1, (2, 2))
    conv2d(draw(1, 9, 8, 2), draw(3, 3, 2, 2), draw(3), (2, 1), (1, 3), 1, (3, 4))
    conv2d(draw(1, 8, 7, 4), draw(6, 3, 3, 2), draw(6), (3, 2), (2, 0), 2, (2, 3))
    conv2d(draw(2, 8, 9, 6), draw(6, 3, 3, 1), draw(6), (1, 1), (2, 3), 6, (2, 3))  # depthwise
    conv2d(draw(1, 9, 9, 3), draw(3, 3, 3, 1), None, (2, 2), (1, 1), 3, (2, 4))
    conv2d(draw(1, 5, 9, 1), draw(5, 1, 4, 1), None, (1, 2), (0, 1), 1, (7, 2))


def write(folder):
    elementwise()
    reductions_and_shapes()
    products()
    pooling()
    norms()
    losses()
    sections = {"operations": operations, "optimizers": optimizers(), "clip": clip(),
                "fake_quantize": fake_quantize(), "lsq": lsq(), "observers": observers(),
                "histograms": histograms()}
    # Cases that were added later are drawn last, so that earlier cases keep their numbers.
    functions()
    batch_norm_of_rows()
    later_losses()
    sections["optimizers"] += later_optimizers()
    sections["averages"] = averages()
    operation("global_max_pool2d", {"x": draw(2, 3, 4, 5)},
              lambda x: nhwc(F.adaptive_max_pool2d(nchw(x), 1)))
    probabilities = draw(4, 7, low=0)
    operation("cross_entropy", {"x": draw(4, 7)},
              lambda x: F.cross_entropy(x, probabilities),
              constants={"target": probabilities})
    moves()
    factors()
    write_sections(Path(folder) / "operations.json", sections)
    operations.clear()
    generator.seed(1012)  # the cases of a file do not depend on other files
    signals()
    dilated_images()
    pooling_options()
    write_sections(Path(folder) / "signals.json", {"operations": operations})


def pooling_options():
    def pool(op, x, kernel, stride, padding, **flags):
        axes = 1 if op.endswith("1d") else 2
        compute, to, back = getattr(F, op), (ncl, nchw)[axes - 1], (nlc, nhwc)[axes - 1]
        given = {"count_include_pad": False, **flags} if "avg" in op else flags
        sizes = {"kernel": kernel, "stride": stride, "padding": padding}
        if axes == 2:
            sizes = {name: [number, number] for name, number in sizes.items()}
        operation(op, {"x": x}, lambda x: back(compute(to(x), kernel, stride, padding, **given)),
                  {**sizes, **flags})

    for stride, padding in (2, 0), (2, 1), (3, 1):
        pool("max_pool1d", draw(2, 7, 3), 4, stride, padding, ceil_mode=True)
        pool("max_pool2d", draw(1, 6, 8, 2), 4, stride, padding, ceil_mode=True)
        for ceil_mode in False, True:
            flags = {"ceil_mode": ceil_mode, "count_include_pad": True}
            pool("avg_pool1d", draw(2, 7, 3), 4, stride, padding, **flags)
            pool("avg_pool2d", draw(1, 6, 8, 2), 4, stride, padding, **flags)
        pool("avg_pool2d", draw(1, 6, 8, 2), 4, stride, padding, ceil_mode=True)


def write_sections(path, sections):
    # One case on each line, so that a changed case is one changed line.
    lines = []
    for name, cases in sections.items():
        rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        lines.append(f'"{name}":[\n{rows}\n]')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    write(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
