"""make_tflite.py FILE: writes docs/guide/lines.tflite, the int8 network of the guide. Needs Python only.

The network takes grayscale images of 8 x 8 pixels (float32 in [0, 1]) and says whether their lines are horizontal or
vertical: two 3 x 3 filters, ReLU, the mean of each filter's image, a linear layer, softmax. Its weights are chosen by
hand. Field numbers are those of TFLite's schema; TFLite runs the file.
"""

import struct
import sys


class Table:
    """A table of a flatbuffer. Its fields: {number: value}. A value is bytes (a number), or a part that follows."""

    def __init__(self, fields):
        self.fields = fields

    def write(self, out, at):
        align(out, 4)
        count = max(self.fields, default=-1) + 1
        slots = [0] * count
        size = 4
        for number, value in sorted(self.fields.items(), key=lambda f: -len(f[1]) if isinstance(f[1], bytes) else -4):
            width = len(value) if isinstance(value, bytes) else 4
            size += -size % width
            slots[number] = size
            size += width
        vtable = struct.pack("<%dH" % (count + 2), 4 + 2 * count, size, *slots)
        out += vtable + bytes(-len(vtable) % 4)
        begin = len(out)
        out[at : at + 4] = struct.pack("<I", begin - at)
        out += struct.pack("<i", len(vtable) + -len(vtable) % 4) + bytes(size - 4)
        for number, value in self.fields.items():
            place = begin + slots[number]
            if isinstance(value, bytes):
                out[place : place + len(value)] = value
        for number, value in self.fields.items():
            if not isinstance(value, bytes):
                value.write(out, begin + slots[number])


class Vector:
    """A vector of numbers, or a text."""

    def __init__(self, form, values):
        self.data = struct.pack("<%d%s" % (len(values), form), *values)
        self.count = len(values)

    def write(self, out, at):
        align(out, 16, 12)  # the numbers begin at a multiple of 16
        out[at : at + 4] = struct.pack("<I", len(out) - at)
        out += struct.pack("<I", self.count) + self.data + bytes(1)


class Tables:
    """A vector of tables."""

    def __init__(self, tables):
        self.tables = tables

    def write(self, out, at):
        align(out, 4)
        out[at : at + 4] = struct.pack("<I", len(out) - at)
        out += struct.pack("<I", len(self.tables)) + bytes(4 * len(self.tables))
        first = len(out) - 4 * len(self.tables)
        for i, table in enumerate(self.tables):
            table.write(out, first + 4 * i)


def align(out, multiple, rest=0):
    while len(out) % multiple != rest:
        out.append(0)


def byte(value):
    return struct.pack("<b", value)


def number(value):
    return struct.pack("<i", value)


def text(value):
    return Vector("B", value.encode())


FLOAT32, INT32, INT8 = 0, 2, 9
buffers = [Table({})]
tensors = []


def tensor(name, shape, kind, scale=None, zero_point=0, data=None):
    fields = {0: Vector("i", shape), 1: byte(kind), 2: number(0), 3: text(name)}
    if data is not None:
        fields[2] = number(len(buffers))
        buffers.append(Table({0: Vector("B", struct.pack("<%d%s" % (len(data), "i" if kind == INT32 else "b"), *data))}))
    if scale is not None:
        fields[4] = Table({2: Vector("f", [scale]), 3: Vector("q", [zero_point])})
    tensors.append(Table(fields))
    return len(tensors) - 1


def operation(code, inputs, output, options=None, options_type=0):
    fields = {0: number(len(codes)), 1: Vector("i", inputs), 2: Vector("i", [output])}
    if options is not None:
        fields[3], fields[4] = byte(options_type), Table(options)
    codes.append(Table({0: byte(code), 2: number(1), 3: number(code)}))
    operations.append(Table(fields))


codes, operations = [], []
pixel, weight, edge = 1 / 255, 1 / 64, 4 / 255
across = [-32, -32, -32, 64, 64, 64, -32, -32, -32]  # a bright row between dark ones
down = [-32, 64, -32, -32, 64, -32, -32, 64, -32]
floats = tensor("image", [1, 8, 8, 1], FLOAT32)
image = tensor("pixels", [1, 8, 8, 1], INT8, pixel, -128)
filters = tensor("filters", [2, 3, 3, 1], INT8, weight, 0, across + down)
no_bias = tensor("no_bias", [2], INT32, pixel * weight, 0, [0, 0])
edges = tensor("edges", [1, 6, 6, 2], INT8, edge, -128)
means = tensor("means", [1, 1, 1, 2], INT8, edge, -128)
shape = tensor("shape", [2], INT32, data=[1, 2])
flat = tensor("flat", [1, 2], INT8, edge, -128)
compared = tensor("compared", [2, 2], INT8, weight, 0, [127, -127, -127, 127])
logits = tensor("logits", [1, 2], INT8, 1 / 32, 0)
shares = tensor("shares", [1, 2], INT8, 1 / 256, -128)
answer = tensor("horizontal, vertical", [1, 2], FLOAT32)
operation(114, [floats], image)  # QUANTIZE
operation(3, [image, filters, no_bias], edges, {0: byte(1), 1: number(1), 2: number(1), 3: byte(1)}, 1)  # CONV_2D
operation(1, [edges], means, {0: byte(1), 1: number(6), 2: number(6), 3: number(6), 4: number(6)}, 5)  # AVERAGE_POOL_2D
operation(22, [means, shape], flat)  # RESHAPE
operation(9, [flat, compared, -1], logits, {0: byte(0)}, 8)  # FULLY_CONNECTED
operation(25, [logits], shares, {0: struct.pack("<f", 1)}, 9)  # SOFTMAX
operation(6, [shares], answer)  # DEQUANTIZE

graph = Table({0: Tables(tensors), 1: Vector("i", [floats]), 2: Vector("i", [answer]), 3: Tables(operations)})
model = Table({0: number(3), 1: Tables(codes), 2: Tables([graph]), 4: Tables(buffers)})
out = bytearray(4) + b"TFL3"
model.write(out, 0)
with open(sys.argv[1], "wb") as file:
    file.write(out)
