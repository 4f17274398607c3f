"""Writes pytorch/NAME.safetensors, the weights of small networks as
safetensors.torch.save_file(net.state_dict(), path) writes them, and pytorch/networks.json: for each
network an input and PyTorch's output, both in the layout [N, H, W, C].

    python3 make_networks.py [FOLDER]

Made with PyTorch 2.6 (Debian 13: python3-torch). Weights and inputs are multiples of 1/32, which
F16 and BF16 hold exactly; outputs are computed in float64. Heights and widths differ.
"""

import json
import random
import struct
import sys
from pathlib import Path

import torch
from torch import nn

generator = random.Random(2026)
TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}


def draw(shape, low=-16, high=16):
    count = 1
    for extent in shape:
        count *= extent
    return torch.tensor([generator.randrange(low, high) / 32 for _ in range(count)],
                        dtype=torch.float64).reshape(shape)


class TwoBranches(nn.Module):
    """Two flattened images side by side; one of them is added to a Linear's result."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(2, 3, 3)
        self.b = nn.Conv2d(2, 2, 1)
        self.rows = nn.Linear(60, 36)
        self.out = nn.Linear(36 + 60, 4)

    def forward(self, x):
        a = torch.relu(self.a(x)).flatten(1)
        b = self.b(x).flatten(1)
        return self.out(torch.cat([a + self.rows(b), b], 1))


def networks():
    yield "image", (2, 2, 6, 5), nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, (2, 1), groups=4), nn.PReLU(8), nn.Flatten(),
        nn.BatchNorm1d(32), nn.PReLU(32), nn.Dropout(), nn.Linear(32, 32), nn.ReLU(),
        nn.Linear(32, 3))
    yield "autoencoder", (2, 1, 4, 6), nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.Flatten(), nn.Linear(72, 5), nn.ReLU(), nn.Linear(5, 24),
        nn.BatchNorm1d(24), nn.ReLU(), nn.Unflatten(1, (4, 2, 3)), nn.Upsample(scale_factor=2),
        nn.Conv2d(4, 1, 3, padding=1))
    yield "signal", (2, 3, 12), nn.Sequential(
        nn.Conv1d(3, 4, 3, stride=2, bias=False), nn.BatchNorm1d(4), nn.Tanh(), nn.Flatten(),
        nn.Linear(20, 2))
    yield "branches", (2, 2, 6, 5), TwoBranches()
    yield "padded", (2, 1, 5, 4), nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(60, 4))


def channels_last(x):
    return x.movedim(1, -1).contiguous() if x.dim() > 2 else x


def dump(x):
    return {"shape": list(x.shape), "values": [float(v) for v in x.reshape(-1).tolist()]}


def save_file(tensors, path):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.contiguous().view(torch.uint8).reshape(-1).tolist()) if tensor.dim() \
            else struct.pack("<q", int(tensor))
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent) / "pytorch"
    folder.mkdir(exist_ok=True)
    cases = {}
    for name, shape, net in networks():
        net = net.double().eval()
        for key, tensor in net.state_dict().items():
            if tensor.dtype == torch.float64:
                positive = key.endswith("running_var")
                tensor.copy_(draw(tensor.shape, 16 if positive else -16, 64 if positive else 16))
        x = draw(shape)
        with torch.no_grad():
            y = net(x)
        cases[name] = {"x": dump(channels_last(x)), "y": dump(channels_last(y))}
        types = [torch.float32] + ([torch.float16, torch.bfloat16] if name == "image" else [])
        for dtype in types:
            state = {key: t if t.dtype == torch.int64 else t.to(dtype)
                     for key, t in net.state_dict().items()}
            suffix = "" if dtype == torch.float32 else "_" + TYPES[dtype].lower()
            save_file(state, folder / f"{name}{suffix}.safetensors")
    # As it is trained on normalized images; "padded" itself takes them as they are.
    net_padded = net
    x = draw((2, 1, 5, 4), 0, 32)
    mean, deviation = 5 / 32, 12 / 32
    with torch.no_grad():
        y = net_padded((x - mean) / deviation)
    cases["normalized"] = {"x": dump(channels_last(x)), "y": dump(channels_last(y)),
                           "mean": mean, "deviation": deviation}
    lines = [json.dumps(name) + ": " + json.dumps(case) for name, case in cases.items()]
    (folder / "networks.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
