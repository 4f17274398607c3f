"""Writes methods.json: what methods after training compute, by PyTorch from the papers' formulas.

    python3 make_methods.py [FOLDER]

Made with PyTorch 2.6 (Debian 13: python3-torch). Everything is computed in float64; results are
rounded to float32 once. Inputs are multiples of 1/32.

  rounding      AdaRound (Nagel et al. 2020, equations 22 to 25) of a linear layer with a ReLU: v,
                weights, scale of each output, x, target; h(v), soft weights, regularizer, loss, and
                the gradients of regularizer and loss by v. beta and lambda are numbers.
  annealing     beta of some steps
  equalization  r1, r2, and s of Nagel et al. 2019, equation 11
  clipped       means of clipped normal variables, by numerical integration (not equation 19)
  correction    a linear layer that reads a batch norm and a ReLU: beta, gamma, weight, quantized
                weight, and sum of (w_q - w) E[x] for each output
"""

import json
import random
import sys
from pathlib import Path

import torch

generator = random.Random(43)
HIGH, LOW = 1.1, -0.1


def draw(*shape, low=-64, high=64):
    """Multiples of 1/32 in [low / 32, high / 32)."""
    count = 1
    for extent in shape:
        count *= extent
    return torch.tensor([generator.randrange(low, high) / 32 for _ in range(count)],
                        dtype=torch.float64).reshape(shape)


def values(tensor):
    return {"shape": list(tensor.shape),
            "values": tensor.detach().to(torch.float32).flatten().tolist()}


def stretched(v):
    return torch.clip(torch.sigmoid(v) * (HIGH - LOW) + LOW, 0, 1)


def rounding(beta, strength):
    weight, x, bias = draw(4, 6), draw(5, 6), draw(4)
    # Some v lie beyond the clip of h, whose ends are at +-2.398.
    v = draw(4, 6, low=-90, high=90).requires_grad_()
    target = torch.relu(draw(5, 4))
    qmax = 7
    # The second scale is so small that codes saturate.
    scale = torch.tensor([0.25, 0.125, 0.3125, 0.5], dtype=torch.float64).reshape(4, 1)
    h = stretched(v)
    soft = scale * torch.clip(torch.floor(weight / scale) + h, -qmax, qmax)
    regularizer = (1 - (2 * h - 1).abs().pow(beta)).sum()
    grad_regularizer, = torch.autograd.grad(regularizer, v, retain_graph=True)
    y = torch.relu(x @ soft.T + bias)
    loss = ((y - target) ** 2).sum(1).mean() + strength * regularizer
    grad_loss, = torch.autograd.grad(loss, v)
    return {"beta": beta, "lambda": strength, "bits": 4, "v": values(v), "weight": values(weight),
            "scale": scale.flatten().tolist(), "x": values(x), "bias": values(bias),
            "target": values(target), "h": values(h), "soft": values(soft),
            "regularizer": regularizer.item(), "grad_regularizer": values(grad_regularizer),
            "loss": loss.item(), "grad_loss": values(grad_loss)}


def annealing(steps, warm_up, first, last):
    def beta(step):  # BRECQ's published schedule: linear after the warm-up
        if step < warm_up:
            return first
        rest = (step - warm_up) / (steps - warm_up)
        return last + (first - last) * max(0.0, 1 - rest)
    at = [0, warm_up - 1, warm_up, (steps + warm_up) // 2, steps - 1]
    return {"steps": steps, "warm_up": warm_up, "first": first, "last": last, "at": at,
            "beta": [beta(step) for step in at]}


def equalization():
    first, second = draw(5, 3, 3, 2), draw(4, 3, 3, 5)
    r1 = first.abs().flatten(1).max(1).values
    r2 = second.abs().amax((0, 1, 2))
    return {"first": values(first), "second": values(second), "r1": values(r1), "r2": values(r2),
            "s": values(1 / r2 * torch.sqrt(r1 * r2))}


def integrated(mean, deviation, low, high):
    """E[clip(x, low, high)] by the trapezoidal rule over 12 deviations on each side."""
    x = torch.linspace(mean - 12 * deviation, mean + 12 * deviation, 400001, dtype=torch.float64)
    density = torch.exp(-0.5 * ((x - mean) / deviation) ** 2)
    density /= torch.trapezoid(density, x)
    return torch.trapezoid(torch.clip(x, low, high) * density, x).item()


def clipped():
    cases = [(0.0, 1.0, 0.0, None), (0.5, 2.0, 0.0, None), (-1.25, 0.75, 0.0, None),
             (2.0, 3.0, 0.0, 6.0), (5.5, 1.0, 0.0, 6.0), (-0.5, 1.5, None, None)]
    infinity = float("inf")
    return [{"mean": m, "deviation": d, "low": low, "high": high,
             "result": integrated(m, d, -infinity if low is None else low,
                                  infinity if high is None else high)}
            for m, d, low, high in cases]


def correction():
    beta, gamma, weight = draw(6), draw(6, low=8, high=64), draw(3, 6)
    scale = weight.abs().max(1, keepdim=True).values / 3  # 3 bits, narrow
    quantized = torch.clip(torch.round(weight / scale), -3, 3) * scale
    mean = torch.tensor([integrated(b.item(), g.item(), 0.0, float("inf"))
                         for b, g in zip(beta, gamma)], dtype=torch.float64)
    return {"beta": values(beta), "gamma": values(gamma), "weight": values(weight),
            "quantized": values(quantized), "moved": values((quantized - weight) @ mean)}


folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
(folder / "methods.json").write_text(json.dumps({
    "rounding": [rounding(20.0, 0.01), rounding(2.0, 0.5), rounding(6.25, 1.0)],
    "annealing": [annealing(1000, 200, 20.0, 2.0), annealing(10, 3, 8.0, 4.0)],
    "equalization": equalization(),
    "clipped": clipped(),
    "correction": correction(),
}, separators=(",", ":")) + "\n")
