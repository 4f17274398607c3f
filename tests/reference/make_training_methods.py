"""Writes training_methods.json: methods while training, by PyTorch from the papers' formulas.

    python3 make_training_methods.py [FOLDER]

Made with PyTorch 2.6 (Debian 13: python3-torch). Everything is computed in float64; results are
rounded to float32 once. Inputs are multiples of 1/32. g is the gradient of y; rounding passes it
straight through.

  ternary      TWN (Li et al. 2016), for each row of w times a factor of a folded batch norm
  dorefa       DoReFa-Net's weights (Zhou et al. 2016, equation 9) on the grid of multiples of
               1 / qmax, which has a code of 0
  lsq_plus     LSQ+ (Bhalgat et al. 2020, equations 5 to 8). An integer z takes the place of
               -beta / s, so y is s (q - z); the gradients are those of y = s q + beta. Inside
               means that the rounded code is a code.
  pact         PACT (Choi et al. 2018, equations 1 to 3)
  binary       signs times mean |w| of each row, with BinaryConnect's bound on the gradient
  distillation Hinton et al. 2015: T^2 KL(teacher || student), mean over rows
  oscillation  Nagel et al. 2022, algorithm 1: codes of weights after each step, which weights are
               frozen, and at which code
"""

import json
import random
import sys
from pathlib import Path

import torch

generator = random.Random(2020)


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


def ste_round(x):
    return x + (torch.round(x) - x).detach()


def ternary(rows, columns, threshold):
    w, g, factor = draw(rows, columns), draw(rows, columns), draw(rows, low=8)
    delta = threshold * w.abs().mean(1, keepdim=True)
    kept = w.abs() > delta
    alpha = (w.abs() * kept).sum(1, keepdim=True) / kept.sum(1, keepdim=True)
    codes = torch.sign(w) * kept
    column = factor.reshape(-1, 1)
    return {"threshold": threshold, "w": values(w), "g": values(g), "factor": values(factor),
            "codes": values(codes * torch.sign(column)), "scale": values(alpha * column.abs()),
            "t": values(codes * alpha), "grad_w": values(g), "grad_w_folded": values(g * column)}


def dorefa(bits, per_channel):
    # Of equal maxima, PyTorch chooses one or divides the gradient.
    def is_unique(rows):
        largest = rows.abs().max(1, keepdim=True).values
        return bool(((rows.abs() == largest).sum(1) == 1).all())
    w, g = draw(3, 10), draw(3, 10)
    while not (is_unique(w) and is_unique(w.reshape(1, -1))):
        w = draw(3, 10)
    w.requires_grad_()
    u = torch.tanh(w)
    most = u.abs().max(1, keepdim=True).values if per_channel else u.abs().max()
    qmax = 2 ** (bits - 1) - 1
    y = ste_round(qmax * u / most) / qmax
    grad_w, = torch.autograd.grad((y * g).sum(), w)
    return {"bits": bits, "per_channel": per_channel, "w": values(w), "g": values(g),
            "y": values(y), "grad_w": values(grad_w)}


def lsq_plus(bits, signed, s, z):
    x, g = draw(4, 12), draw(4, 12)
    qmin, qmax = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
    beta = -s * z
    code = torch.round(x / s) + z  # in this order, which matters for ties
    inside = (code >= qmin) & (code <= qmax)
    y = s * torch.clip(code, qmin, qmax) + beta
    by_s = torch.where(inside, code - (x - beta) / s, torch.clip(code, qmin, qmax))
    by_beta = torch.where(inside, 0.0, 1.0)
    factor = 1 / (x.shape[1] * qmax) ** 0.5
    return {"bits": bits, "signed": signed, "s": s, "beta": beta, "x": values(x), "g": values(g),
            "y": values(y), "grad_x": values(g * inside), "grad_s": (g * by_s).sum().item() * factor,
            "grad_beta": (g * by_beta).sum().item() * factor}


def pact(bits, alpha):
    # x = 0 and x = alpha are kinks, of which PyTorch takes the middle.
    x, g = (draw(4, 12) + 1 / 64).requires_grad_(), draw(4, 12)
    a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    y = 0.5 * (x.abs() - (x - a).abs() + a)
    levels = 2 ** bits - 1
    quantized = y + (torch.round(y * levels / a) * a / levels - y).detach()
    grad_x, grad_a = torch.autograd.grad((quantized * g).sum(), [x, a])
    return {"bits": bits, "alpha": alpha, "x": values(x), "g": values(g), "y": values(quantized),
            "grad_x": values(grad_x), "grad_alpha": grad_a.item()}


def binary():
    w, g = draw(4, 9), draw(4, 9)
    y = torch.where(w >= 0, 1.0, -1.0) * w.abs().mean(1, keepdim=True)
    return {"w": values(w), "g": values(g), "y": values(y), "grad_w": values(g * (w.abs() <= 1))}


def distillation(temperature):
    student, teacher = draw(5, 7, low=-128, high=128).requires_grad_(), draw(5, 7)
    loss = torch.nn.functional.kl_div(torch.log_softmax(student / temperature, 1),
                                      torch.softmax(teacher / temperature, 1),
                                      reduction="batchmean") * temperature ** 2
    grad, = torch.autograd.grad(loss, student)
    return {"temperature": temperature, "student": values(student), "teacher": values(teacher),
            "loss": loss.item(), "grad": values(grad)}


def oscillation(momentum, threshold, steps, count):
    """Weights walk by up to a code and a half around borders of two codes; scale 1, 3 bits."""
    start = [generator.randrange(-96, 96) / 32 for _ in range(count)]
    centre = [generator.randrange(-3, 3) + 0.5 for _ in range(count)]
    reach = [generator.choice([4, 16, 48]) for _ in range(count)]

    def code(w):
        return max(-3, min(3, int(torch.round(torch.tensor(w, dtype=torch.float64)).item())))

    walk = [[centre[i] + generator.randrange(-reach[i], reach[i]) / 32 + 1 / 128
             for i in range(count)] for _ in range(steps)]
    previous = [code(w) for w in start]
    direction, frequency = [0] * count, [0.0] * count
    mean, frozen = [float(q) for q in previous], [None] * count
    history = []
    for row in walk:
        for i in range(count):
            if frozen[i] is not None:
                continue
            q = code(row[i])
            change = (q > previous[i]) - (q < previous[i])
            oscillated = change * direction[i] == -1
            direction[i] = change or direction[i]
            frequency[i] = momentum * oscillated + (1 - momentum) * frequency[i]
            mean[i] = momentum * q + (1 - momentum) * mean[i]
            previous[i] = q
            if frequency[i] > threshold:
                frozen[i] = int(torch.round(torch.tensor(mean[i], dtype=torch.float64)).item())
        history.append(list(frozen))
    return {"momentum": momentum, "threshold": threshold, "start": start, "walk": walk,
            "frozen": [[9 if f is None else f for f in row] for row in history]}


folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
(folder / "training_methods.json").write_text(json.dumps({
    "ternary": [ternary(4, 9, 0.7), ternary(3, 17, 0.5)],
    "dorefa": [dorefa(bits, per_channel) for bits in (2, 4, 8) for per_channel in (True, False)],
    "lsq_plus": [lsq_plus(2, False, 0.75, 0), lsq_plus(4, False, 0.125, 5),
                 lsq_plus(3, True, 0.25, -1), lsq_plus(8, False, 0.0078125, 100)],
    "pact": [pact(bits, alpha) for bits, alpha in ((2, 1.51), (4, 0.83), (8, 1.01))],
    "binary": [binary()],
    "distillation": [distillation(1.0), distillation(4.0)],
    "oscillation": [oscillation(0.1, 0.15, 60, 12), oscillation(0.02, 0.05, 60, 8)],
}, separators=(",", ":")) + "\n")
