"""Writes docs/guide/shapes.onnx: the network of the guide, as PyTorch's torch.onnx.export writes it.

    python3 make_onnx.py float.safetensors shapes.onnx

float.safetensors is what the guide's program `train` saves. PyTorch's layouts are [O, I, KH, KW] and
[N, C, H, W]; a flattened image has the order [C, H, W]. Needs nothing but Python: ONNX files are
protobuf messages, whose fields are written here with the numbers of onnx.proto.
"""
import json
import struct
import sys


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field, value):
    return varint(field << 3) + varint(value)


def text(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, dims, values, kind=1):
    form = "<%d%s" % (len(values), {1: "f", 7: "q"}[kind])
    return b"".join(integer(1, extent) for extent in dims) + integer(2, kind) + text(8, name) + text(
        9, struct.pack(form, *values))


def attribute(name, value):
    if isinstance(value, list):
        return text(1, name) + b"".join(integer(8, v) for v in value) + integer(20, 7)
    if isinstance(value, bytes):
        return text(1, name) + text(5, value) + integer(20, 4)
    return text(1, name) + integer(3, value) + integer(20, 2)


def node(kind, inputs, output, name, **attributes):
    return text(1, b"".join(text(1, x) for x in inputs) + text(2, output) + text(3, name) + text(4, kind) + b"".join(
        text(5, attribute(key, value)) for key, value in attributes.items()))


def value(name, dims):
    shape = b"".join(text(1, text(2, d) if isinstance(d, str) else integer(1, d)) for d in dims)
    return text(1, name) + text(2, text(1, integer(1, 1) + text(2, shape)))


def read_safetensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        if entry["dtype"] == "F32":
            values = struct.unpack("<%df" % ((last - first) // 4), data[8 + size + first:8 + size + last])
            tensors[name] = (entry["shape"], list(values))
    return tensors


def to_pytorch(dims, values):
    """[O, KH, KW, I] becomes [O, I, KH, KW]."""
    if len(dims) != 4:
        return dims, values
    o, h, w, i = dims
    moved = [values[((a * h + y) * w + x) * i + b] for a in range(o) for b in range(i) for y in range(h) for x in range(w)]
    return [o, i, h, w], moved


def main(source, target):
    tensors = {name: to_pytorch(*entry) for name, entry in read_safetensors(source).items()}
    nodes = []

    def add(kind, inputs, name, **attributes):
        nodes.append(node(kind, inputs, name + "_output_0", name, **attributes))
        return name + "_output_0"

    def conv(x, path, stride=1, padding=1):
        name = "/" + path.replace(".", "/") + "/Conv"
        kernel = tensors[path + ".weight"][0][2]
        inputs = [x, path + ".weight"] + ([path + ".bias"] if path + ".bias" in tensors else [])
        return add("Conv", inputs, name, dilations=[1, 1], group=1, kernel_shape=[kernel, kernel],
                   pads=[padding] * 4, strides=[stride] * 2)

    def norm(x, path):
        parts = [path + "." + part for part in ("weight", "bias", "running_mean", "running_var")]
        return add("BatchNormalization", [x] + parts, "/" + path.replace(".", "/") + "/BatchNormalization")

    x = norm(conv("input", "0", stride=2), "1")
    x = add("Relu", [x], "/2/Relu")
    y = add("Relu", [norm(conv(x, "3.branch.0"), "3.branch.1")], "/3/branch/2/Relu")
    y = norm(conv(y, "3.branch.3"), "3.branch.4")
    x = add("Relu", [add("Add", [y, x], "/3/Add")], "/3/relu/Relu")
    x = add("MaxPool", [x], "/4/MaxPool", ceil_mode=0, kernel_shape=[2, 2], pads=[0] * 4, strides=[2, 2])
    x = add("Relu", [norm(conv(x, "5"), "6")], "/7/Relu")
    x = add("GlobalAveragePool", [x], "/8/GlobalAveragePool")
    # Flatten, as PyTorch writes it: with the size of the batch from the shape.
    shape = add("Shape", [x], "/9/Shape")
    zero = add("Constant", [], "/9/Constant", value=tensor("", [], [0], 7))
    batch = add("Gather", [shape, zero], "/9/Gather", axis=0)
    axes = add("Constant", [], "/9/Constant_1", value=tensor("", [1], [0], 7))
    batch = add("Unsqueeze", [batch, axes], "/9/Unsqueeze")
    rest = add("Constant", [], "/9/Constant_2", value=tensor("", [1], [-1], 7))
    x = add("Reshape", [x, add("Concat", [batch, rest], "/9/Concat", axis=0)], "/9/Reshape")
    nodes.append(node("Gemm", [x, "10.weight", "10.bias"], "logits", "/10/Gemm", transB=1))

    graph = b"".join(nodes) + text(2, "main_graph") + b"".join(
        text(5, tensor(name, *entry)) for name, entry in tensors.items())
    graph += text(11, value("input", ["batch", 1, 16, 16])) + text(12, value("logits", ["batch", 4]))
    model = integer(1, 8) + text(2, "make_onnx.py") + text(7, graph) + text(8, integer(2, 17))
    with open(target, "wb") as file:
        file.write(model)


if __name__ == "__main__":
    main(*sys.argv[1:])
