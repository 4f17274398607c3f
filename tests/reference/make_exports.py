"""Writes exports/NAME.onnx, small networks as torch.onnx.export writes them, and exports/networks.json: for
each network an input and PyTorch's output, both in the layout [N, H, W, C].

    python3 make_exports.py [FOLDER]

Made with PyTorch 2.6 (Debian 13: python3-torch), whose exporter by tracing needs no other package.
Inputs are multiples of 1/32; weights are drawn by PyTorch. Heights and widths differ.
"""

import json
import random
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

generator = random.Random(2026)


def draw(shape):
    count = 1
    for extent in shape:
        count *= extent
    return torch.tensor([generator.randrange(-32, 32) / 32 for _ in range(count)]).reshape(shape)


def conv_bn(inputs, outputs, kernel=3, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.conv2 = nn.Conv2d(4, 6, 3)
        self.fc1 = nn.Linear(6 * 2 * 3, 12)
        self.fc2 = nn.Linear(12, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return F.log_softmax(self.fc2(torch.relu(self.fc1(x))), 1)


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down = nn.Conv2d(channels, 2, 1)
        self.up = nn.Conv2d(2, channels, 1)

    def forward(self, x):
        s = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.up(F.relu(self.down(s))))


class Inverted(nn.Module):
    """An inverted residual of MobileNetV2, or of V3 with squeeze and hard swish."""

    def __init__(self, inputs, outputs, stride, act, squeeze):
        super().__init__()
        hidden = inputs * 2
        layers = [conv_bn(inputs, hidden, 1, act=act),
                  conv_bn(hidden, hidden, 3, stride, hidden, act=act)]
        if squeeze:
            layers.append(SqueezeExcite(hidden))
        layers.append(conv_bn(hidden, outputs, 1, act=None))
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


class MobileNet(nn.Module):
    def __init__(self, act, squeeze):
        super().__init__()
        self.features = nn.Sequential(
            conv_bn(3, 4, 3, 2, act=act), Inverted(4, 4, 1, act, squeeze),
            Inverted(4, 6, 2, act, squeeze), conv_bn(6, 8, 1, act=act))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(8, 5))

    def forward(self, x):
        return self.classifier(self.features(x).mean([2, 3]))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a = conv_bn(inputs, outputs, 3, stride)
        self.b = conv_bn(outputs, outputs, 3, act=None)
        self.down = conv_bn(inputs, outputs, 1, stride, act=None) if stride > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.b(self.a(x)) + self.down(x))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = conv_bn(1, 4)
        self.b = conv_bn(4, 6)
        self.c = nn.Conv2d(10, 2, 3, padding=1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        return torch.sigmoid(self.c(torch.cat([F.interpolate(b, scale_factor=2), a], 1)))


class Normalized(nn.Module):
    """A vector of length 1 for each position, as embeddings have."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 5, 3), nn.Linear(20, 3)

    def forward(self, x):
        return F.normalize(self.b(torch.flatten(F.normalize(self.a(x), dim=1), 1)), dim=1)


def networks():
    yield "lenet", (2, 1, 16, 20), LeNet(), 13
    yield "ds_cnn", (2, 1, 13, 10), nn.Sequential(
        nn.Conv2d(1, 8, (4, 3), (2, 2), (2, 1)), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(),
        *[m for _ in range(2) for m in (*conv_bn(8, 8, 3, groups=8), *conv_bn(8, 8, 1))],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 6)), 17
    yield "mobilenet_v2", (2, 3, 12, 16), MobileNet(nn.ReLU6, False), 11
    yield "mobilenet_v3", (2, 3, 12, 16), MobileNet(nn.Hardswish, True), 17
    yield "resnet", (2, 3, 8, 12), nn.Sequential(
        conv_bn(3, 4), nn.MaxPool2d(3, 2, 1), Residual(4, 4, 1), Residual(4, 6, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)), 12
    yield "signal", (2, 2, 24), nn.Sequential(
        nn.Conv1d(2, 4, 5, 2, 2), nn.BatchNorm1d(4), nn.ELU(), nn.MaxPool1d(2),
        nn.Conv1d(4, 4, 3, padding=2, dilation=2, groups=2), nn.LeakyReLU(0.1), nn.AvgPool1d(2),
        nn.Flatten(), nn.Linear(12, 3), nn.Softmax(1)), 17
    yield "autoencoder", (2, 24), nn.Sequential(
        nn.Linear(24, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 4), nn.ReLU(),
        nn.Linear(4, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 24)), 17
    yield "unet", (2, 1, 8, 12), UNet(), 13
    yield "mlp", (3, 9), nn.Sequential(
        nn.Linear(9, 12), nn.GELU(), nn.Linear(12, 12), nn.SiLU(), nn.Linear(12, 8), nn.Softplus(),
        nn.Linear(8, 3)), 17
    yield "normalized", (2, 2, 4, 4), Normalized(), 17


def channels_last(x):
    return x.movedim(1, -1).contiguous() if x.dim() > 2 else x


def dump(x):
    return {"shape": list(x.shape), "values": [float(f"{v:.9g}") for v in x.reshape(-1).tolist()]}


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent) / "exports"
    folder.mkdir(exist_ok=True)
    torch.manual_seed(1)
    cases = {}
    for name, shape, net, opset in networks():
        for module in net.modules():
            if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
                with torch.no_grad():
                    module.running_mean.uniform_(-0.2, 0.2)
                    module.running_var.uniform_(0.5, 2)
                    module.weight.uniform_(0.5, 1.5)
                    module.bias.uniform_(-0.2, 0.2)
        net.eval()
        x = draw(shape)
        with torch.no_grad():
            y = net(x)
        torch.onnx.export(net, (x,), str(folder / f"{name}.onnx"), opset_version=opset,
                          input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, dynamo=False)
        cases[name] = {"x": dump(channels_last(x)), "y": dump(channels_last(y))}
    lines = [json.dumps(name) + ": " + json.dumps(case) for name, case in cases.items()]
    (folder / "networks.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
