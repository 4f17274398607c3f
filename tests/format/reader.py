"""Reads the file of an integer network and computes its integers. Written from docs/format.md; needs only numpy.

It uses none of quantrain's code. You can start your own reader from it.
"""

import json
import math
import struct

import numpy as np


class Refused(Exception):
    """The file breaks a rule of docs/format.md."""


def require(holds, text):
    if not holds:
        raise Refused(text)


# --- JSON ---------------------------------------------------------------------------------------

MOST_BYTES = 1 << 24
MOST_VALUES = 1 << 20
LARGEST_FLOAT = float(np.finfo(np.float32).max)
INT32 = (1 << 31) - 1


def parse_json(text, depth):
    """Parses JSON. Refuses a name that occurs twice in one object, more levels than `depth`, and too many values."""

    def pairs(members):
        result = dict(members)
        require(len(result) == len(members), "a name twice in one object")
        return result

    def constant(name):
        raise Refused(name + " is no JSON")

    def check(value, left):
        if not isinstance(value, (dict, list)):
            return 1
        require(left > 0, "nests too deep")
        inner = list(value.values()) + list(value) if isinstance(value, dict) else value
        return 1 + sum(check(v, left - 1) for v in inner)

    require(len(text) <= MOST_BYTES, "too long")
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses lone surrogates
    except (ValueError, RecursionError) as error:
        raise Refused("is not JSON: %s" % error)
    require(check(value, depth) <= MOST_VALUES, "too many values")
    return value


def whole(value, lo=0, hi=INT32):
    require(type(value) is int and lo <= value <= hi, "%r is no whole number in [%d, %d]" % (value, lo, hi))
    return value


def real(value):
    require(type(value) in (int, float) and math.isfinite(value), "%r is no number" % (value,))
    return float(value)


def real32(value):
    require(abs(real(value)) <= LARGEST_FLOAT, "%r is no float" % (value,))
    return np.float32(value)


def list_of(value, read, most):
    require(type(value) is list and len(value) <= most, "not a list of at most %d" % most)
    return [read(entry) for entry in value]


def members(value, names, optional=()):
    """Returns an object that has all members in `names`, perhaps some in `optional`, and no others."""
    require(type(value) is dict, "%r is no object" % (value,))
    for name in names:
        require(name in value, 'lacks "%s"' % name)
    for name in value:
        require(name in names or name in optional, 'an unknown member "%s"' % name)
    return value


# --- The container ------------------------------------------------------------------------------

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1"}


def read_container(file):
    """Returns metadata and arrays, by name, from the bytes of a safetensors file."""
    require(len(file) >= 8, "too short")
    (length,) = struct.unpack("<Q", file[:8])
    require(length <= MOST_BYTES and 8 + length <= len(file), "a header of %d bytes" % length)
    require(file[8:9] == b"{", "the header does not begin with {")
    header = parse_json(file[8 : 8 + length], 4)
    data = file[8 + length :]
    metadata = {}
    ranges = []
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            require(type(entry) is dict and all(type(v) is str for v in entry.values()), "metadata")
            metadata = entry
            continue
        require(len(name.encode()) <= 1 << 14, "a long name")
        members(entry, ("dtype", "shape", "data_offsets"))
        require(type(entry["dtype"]) is str and entry["dtype"] in DTYPES, "dtype of " + name)
        dtype = np.dtype(DTYPES[entry["dtype"]])
        shape = list_of(entry["shape"], lambda v: whole(v, 0, (1 << 63) - 1), 8)
        offsets = list_of(entry["data_offsets"], lambda v: whole(v, 0, (1 << 63) - 1), 2)
        require(len(offsets) == 2 and offsets[0] <= offsets[1] <= len(data), "data_offsets of " + name)
        begin, end = offsets
        require(math.prod(shape) * dtype.itemsize == end - begin, "shape of " + name)
        ranges.append((begin, end))
        tensors[name] = np.frombuffer(data[begin:end], dtype).reshape(shape)
    covered = 0
    for begin, end in sorted(ranges):
        require(begin == covered, "tensors overlap, or leave a hole")
        covered = end
    require(covered == len(data), "data that belong to no tensor")
    return metadata, tensors


# --- The network --------------------------------------------------------------------------------

MOST_STEPS = 1 << 14
MOST_ELEMENTS = 1 << 30
MOST_EXTENT = 1 << 20
WINDOW = ("h", "w", "c", "o", "kh", "kw", "stride_h", "stride_w", "pad_h", "pad_w", "groups")
END = ("end_h", "end_w")
DILATION = ("dilation_h", "dilation_w")
PRODUCT = ("zero_x", "weight")
EARLY_PRODUCT = ("zero_x", "weight_bits", "weights")
LEAST_BITS = 1
MEMBERS = {
    "view": ("size",),
    "gather": ("rows", "axes", "fill", "run"),
    "quantized_lookup": ("size",),
    "quantized_add": ("size", "zero_a", "zero_b", "m_a", "m_b", "shift", "y"),
    "quantized_mul": ("rows", "channels", "zero_a", "zero_b", "m0", "shift", "y"),
    "quantized_concat": ("rows", "parts", "y"),
    "quantized_softmax": ("rows", "classes", "m0", "shift", "y"),
    "quantized_linear": ("rows", "inputs", "outputs"),
    "quantized_conv2d": WINDOW,
    "quantized_max_pool2d": WINDOW,
    "quantized_avg_pool2d": WINDOW + ("zero_x", "means", "y"),
}


class Tensors:
    """Arrays of the container. A step takes those that belong to it; none may be left over."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.taken = set()

    def take(self, name, dtype):
        require(name in self.tensors, "no tensor " + name)
        array = self.tensors[name]
        require(array.dtype == np.dtype(dtype) and array.ndim == 1 and array.size > 0, "tensor " + name)
        self.taken.add(name)
        return array.astype(np.int64)

    def take_if_there(self, name, dtype):
        return self.take(name, dtype) if name in self.tensors else None


def unpack(packed, bits, count):
    """The integers of `bits` bits in an array of bytes, and the bits that are left over."""
    all_bits = np.unpackbits(packed.astype("u1"), bitorder="little").astype(np.int64)
    fields = all_bits[: count * bits].reshape(count, bits) @ (1 << np.arange(bits))
    codes = np.where(fields >= 1 << (bits - 1), fields - (1 << bits), fields)
    if bits == 1:
        codes = 2 * fields - 1
    return codes, all_bits[count * bits :]


class Constants:
    """The constants of the network. Each must be used."""

    def __init__(self, entries, tensors):
        require(type(entries) is list and len(entries) <= 2 * MOST_STEPS, "constants")
        self.constants = [self.read(entry, "constants.%d" % k, tensors) for k, entry in enumerate(entries)]
        self.used = set()
        self.largest = {}  # the largest sum of weights of one sign, by constant and number of outputs
        self.left = 1 << 26  # weights of shared constants that may be read again
        self.all = 1 << 36  # weights that all products may have

    @staticmethod
    def read(entry, name, tensors):
        members(entry, ("bits", "count"))
        bits, count = whole(entry["bits"], LEAST_BITS, 32), whole(entry["count"], 1, 1 << 40)
        require(bits <= 8 or bits == 32, "%d bits" % bits)
        array = tensors.take(name, "<i4" if bits == 32 else "u1")
        require(array.size == (count if bits == 32 else -(-count * bits // 8)), "elements of " + name)
        if bits == 32:
            return bits, array
        codes, left = unpack(array, bits, count)
        require(not left.any(), "bits after the last integer")
        return bits, codes

    def take(self, position, narrow):
        require(whole(position) < len(self.constants), "no such constant")
        bits, integers = self.constants[position]
        require((bits <= 8) == narrow, "a constant of other bits")
        self.used.add(position)
        return bits, integers

    def count_readings(self, position, outputs, bias, largest):
        """Refuses products that share weights if a proof of (7) would read too many weights again."""
        known = self.largest.get((position, outputs))
        if known is not None and np.abs(bias).max() + 510 * known < 1 << 31:
            return
        if any(at == position for at, _ in self.largest):
            self.left -= self.constants[position][1].size
            require(self.left >= 0, "weights that too many products share")
        self.largest[position, outputs] = largest


def read_codes(json_codes):
    codes = members(json_codes, ("bits", "signed", "narrow", "scale", "zero_point"))
    bits = whole(codes["bits"], LEAST_BITS, 8)
    require(type(codes["signed"]) is bool and type(codes["narrow"]) is bool, "no booleans")
    require(codes["signed"] or not codes["narrow"], "unsigned and narrow")
    require(bits > 1 or not codes["signed"], "signed codes of 1 bit")
    hi = (1 << (bits - 1 if codes["signed"] else bits)) - 1
    lo = 0 if not codes["signed"] else -hi if codes["narrow"] else -hi - 1
    scale = real32(codes["scale"])
    require(scale >= np.finfo(np.float32).tiny, "scale %r" % scale)
    offset = 128 if codes["signed"] else 0
    zero = whole(codes["zero_point"], lo, hi)
    # lo, hi and zero of the stored bytes.
    return dict(codes, scale=scale, lo=lo + offset, hi=hi + offset, zero=zero + offset)


def read_value(entry):
    members(entry, ("name", "shape"), ("node", "codes", "scale", "features"))
    require(type(entry["name"]) is str, "a name")
    require(("codes" in entry) != ("scale" in entry), "codes or a scale")
    if "node" in entry:
        whole(entry["node"], -1)
    value = {"shape": list_of(entry["shape"], lambda v: whole(v, 1), 8)}
    value["size"] = math.prod(value["shape"])
    require(value["size"] <= MOST_ELEMENTS, "too many elements")
    if "codes" in entry:
        value["codes"] = read_codes(entry["codes"])
    else:
        scale = list_of(entry["scale"], real, MOST_VALUES)
        require(scale and value["size"] % len(scale) == 0 and min(scale) > 0, "scales of accumulators")
        value["scale"] = scale
    if "features" in entry:
        features = members(entry["features"], ("offset", "scale"))
        count = value["shape"][-1] if value["shape"] else 1
        offset = list_of(features["offset"], real32, MOST_VALUES)
        scale = list_of(features["scale"], real32, MOST_VALUES)
        require(len(offset) == len(scale) == count and min(scale) > 0, "features")
        value["features"] = np.array(offset, np.float32), np.array(scale, np.float32)
    return value


def read_y(entry):
    members(entry, ("zero_point", "lo", "hi"))
    y = {name: whole(entry[name], 0, 255) for name in entry}
    require(y["lo"] <= y["hi"], "bounds")
    return y


def check_multiplier(m0, shift):
    require(m0 == 0 or 1 << 30 <= m0 < 1 << 31, "m0 %d" % m0)
    require(1 <= shift <= 62, "shift %d" % shift)


def read_early_weights(op, position, tensors):
    """The weights of a step in early files, which have no constants."""
    bits = whole(op["weight_bits"], 2, 8)
    count = whole(op["weights"], 0, 1 << 40)
    packed = tensors.take("%d.weight" % position, "u1")
    width = 2 if bits == 2 else 4 if bits <= 4 else 8
    require(packed.size == -(-count * width // 8), "packed weights")
    w, _ = unpack(packed, width, count)
    require(w.min() >= -(1 << (bits - 1)) and w.max() < 1 << (bits - 1), "a weight of too many bits")
    return w


def read_product(op, position, tensors, constants, outputs, length):
    if "weights" in op:
        w = read_early_weights(op, position, tensors)
    else:
        position_w = op["weight"]
        _, w = constants.take(position_w, narrow=True)
    require(w.size == outputs * length, "%d weights for %d outputs of %d" % (w.size, outputs, length))
    op["weight"] = w.reshape(outputs, length)
    op["zero_x"] = whole(op["zero_x"], 0, 255)
    require(whole(op.get("x_bits", 8)) in (1, 8), "x_bits")
    if "bias" in op:
        _, bias = constants.take(op["bias"], narrow=False)
    else:
        bias = tensors.take_if_there("%d.bias" % position, "<i4")
    op["bias"] = np.zeros(outputs, np.int64) if bias is None else bias
    require(op["bias"].size == outputs, "biases")
    positive = np.maximum(op["weight"], 0).sum(axis=1)
    negative = np.maximum(-op["weight"], 0).sum(axis=1)
    bound = np.abs(op["bias"] - op["zero_x"] * (positive - negative)) + 255 * np.maximum(positive, negative)
    require(bound.max() < 1 << 31, "an accumulator could overflow")
    constants.all -= w.size
    require(constants.all >= 0, "products of too many weights")
    if "weights" not in op:
        constants.count_readings(position_w, outputs, op["bias"], max(positive.max(), negative.max()))
    if "output" in op:
        output = members(op["output"], ("y",))
        op["y"] = read_y(output["y"])
        op["m0"] = tensors.take("%d.output.m0" % position, "<i4")
        op["shift"] = tensors.take("%d.output.shift" % position, "i1")
        require(op["m0"].size == op["shift"].size == outputs, "multipliers")
        for m0, shift in zip(op["m0"], op["shift"]):
            check_multiplier(m0, shift)


def counts_along(extent, kernel, stride, pad, outputs):
    """For each window along an axis, the number of its elements that lie inside the image."""
    first = np.arange(outputs) * stride - pad
    return np.minimum(first + kernel, extent) - np.maximum(first, 0)


def read_window(op, pool):
    for name in WINDOW:
        whole(op[name], 0 if name.startswith("pad") else 1, MOST_EXTENT)
    c, o, groups = op["c"], op["o"], op["groups"]
    require(c % groups == 0 and o % groups == 0, "groups")
    for name, pad in zip(END, ("pad_h", "pad_w")):
        op[name] = whole(op.get(name, 0), -op[pad], MOST_EXTENT - op[pad])
    padded_h = op["h"] + 2 * op["pad_h"] + op["end_h"]
    padded_w = op["w"] + 2 * op["pad_w"] + op["end_w"]
    for name in DILATION:
        op[name] = whole(op.get(name, 1), 1, MOST_EXTENT)
    extent_h = (op["kh"] - 1) * op["dilation_h"] + 1
    extent_w = (op["kw"] - 1) * op["dilation_w"] + 1
    require(extent_h <= padded_h and extent_w <= padded_w, "a kernel that does not fit")
    op["oh"] = (padded_h - extent_h) // op["stride_h"] + 1
    op["ow"] = (padded_w - extent_w) // op["stride_w"] + 1
    require(padded_h * padded_w * c <= MOST_ELEMENTS, "a padded image")
    require(op["oh"] * op["ow"] * o <= MOST_ELEMENTS, "an output")
    if pool:
        require(c == o == groups, "a pool's channels")
        require(op["pad_h"] < op["kh"] and op["pad_w"] < op["kw"], "a pool's padding")
        last_h = (op["oh"] - 1) * op["stride_h"] - op["pad_h"]
        last_w = (op["ow"] - 1) * op["stride_w"] - op["pad_w"]
        require(last_h < op["h"] and last_w < op["w"], "a window outside of the image")
        window = min(op["kh"], op["h"]) * min(op["kw"], op["w"])
        require(op["oh"] * op["ow"] * o * window <= 1 << 36, "a pool's reads")
    return op["h"] * op["w"] * c, op["oh"] * op["ow"] * o


def read_step(entry, position, tensors, constants):
    """A step, with the number of elements of its inputs and output, and their zero points (None: any)."""
    members(entry, ("type", "inputs", "output", "members"), ("weight_scale", "origin"))
    origin = entry.get("origin", {})
    require(type(origin) is dict and all(type(text) is str for text in origin.values()), "an origin")
    require(type(entry["type"]) is str and entry["type"] in MEMBERS, "type %r" % (entry["type"],))
    kind = entry["type"]
    product = kind in ("quantized_linear", "quantized_conv2d")
    scales = ()
    optional = ("output", "bias", "x_bits") if product else ()
    required = MEMBERS[kind]
    if product:
        early = type(entry["members"]) is dict and "weights" in entry["members"]
        required += EARLY_PRODUCT if early else PRODUCT
    if kind == "quantized_add" and type(entry["members"]) is dict and "operands" in entry["members"]:
        required = ("size", "operands", "shift", "y")
    optional += DILATION + END if "conv" in kind else END if "pool" in kind else ()
    op = dict(members(entry["members"], required, optional))
    step = {
        "type": kind,
        "op": op,
        "inputs": list_of(entry["inputs"], whole, MOST_STEPS),
        "output": whole(entry["output"]),
        "accumulators": product and "output" not in op,
        "zero_y": None,
    }
    if kind in ("view", "quantized_lookup", "quantized_add"):
        size = whole(op["size"], 1, MOST_ELEMENTS)
        sizes, y_size = [size], size
    if kind == "gather":
        rows, run = whole(op["rows"], 1, MOST_ELEMENTS), whole(op["run"], 1, MOST_ELEMENTS)
        whole(op["fill"], 0, 255)
        require(type(op["axes"]) is list and 0 < len(op["axes"]) <= 8, "axes")
        sizes, y_size = [rows * run], rows * run
        for k, axis in enumerate(op["axes"]):
            extent = whole(members(axis, ("extent",))["extent"], 1, MOST_ELEMENTS)
            axis["index"] = tensors.take("%d.axes.%d.index" % (position, k), "<i4")
            require(-1 <= axis["index"].min() and 0 <= axis["index"].max() < extent, "an index")
            sizes, y_size = [sizes[0] * extent], y_size * axis["index"].size
        op["fills"] = any((axis["index"] < 0).any() for axis in op["axes"])
    if kind == "quantized_softmax":
        rows, classes = whole(op["rows"], 1, MOST_ELEMENTS), whole(op["classes"], 1, MOST_ELEMENTS)
        check_multiplier(whole(op["m0"]), whole(op["shift"]))
        op["powers"] = tensors.take("%d.powers" % position, "<i4")
        require(op["powers"].size == 256 and op["powers"][0] == 1 << 30, "powers")
        require(0 <= op["powers"].min() and op["powers"].max() == 1 << 30, "powers")
        sizes, y_size = [rows * classes], rows * classes
    if kind in ("view", "gather", "quantized_lookup", "quantized_max_pool2d", "quantized_softmax"):
        zeros = [None]
    if kind == "quantized_lookup":
        op["table"] = tensors.take("%d.table" % position, "u1")
        channels, rest = divmod(op["table"].size, 256)
        require(channels > 0 and rest == 0 and size % channels == 0, "a table")
        op["table"] = op["table"].reshape(channels, 256)
    if kind == "quantized_add":
        if "operands" not in op:
            op["operands"] = [
                {"zero_x": op["zero_a"], "m": op["m_a"]},
                {"zero_x": op["zero_b"], "m": op["m_b"]},
            ]
        require(type(op["operands"]) is list and 0 < len(op["operands"]) <= MOST_STEPS, "operands")
        for operand in op["operands"]:
            whole(members(operand, ("zero_x", "m"))["m"])
        whole(op["shift"], 1, 62)
        zeros = [whole(operand["zero_x"], 0, 255) for operand in op["operands"]]
        sizes = [size] * len(zeros)
    if kind == "quantized_mul":
        rows, channels = (whole(op[n], 1, MOST_ELEMENTS) for n in ("rows", "channels"))
        sizes, y_size = [rows * channels, channels], rows * channels
        zeros = [whole(op["zero_a"], 0, 255), whole(op["zero_b"], 0, 255)]
        check_multiplier(whole(op["m0"]), whole(op["shift"]))
    if kind == "quantized_concat":
        rows = whole(op["rows"], 1, MOST_ELEMENTS)
        require(type(op["parts"]) is list and 0 < len(op["parts"]) <= MOST_STEPS, "parts")
        for part in op["parts"]:
            members(part, ("run", "zero_x", "m0", "shift"))
            whole(part["run"], 1, MOST_ELEMENTS)
            check_multiplier(whole(part["m0"]), whole(part["shift"]))
        sizes = [rows * part["run"] for part in op["parts"]]
        zeros = [whole(part["zero_x"], 0, 255) for part in op["parts"]]
        y_size = sum(sizes)
    if kind == "quantized_linear":
        rows, inputs, outputs = (whole(op[n], 1, MOST_ELEMENTS) for n in ("rows", "inputs", "outputs"))
        sizes, y_size = [rows * inputs], rows * outputs
        read_product(op, position, tensors, constants, outputs, inputs)
        scales = (1, outputs)
    if kind in WINDOWED:
        size, y_size = read_window(op, kind != "quantized_conv2d")
        sizes = [size]
    if kind == "quantized_conv2d":
        length = op["kh"] * op["kw"] * (op["c"] // op["groups"])
        read_product(op, position, tensors, constants, op["o"], length)
        scales = (1, op["o"])
    if kind == "quantized_avg_pool2d":
        require(op["kh"] * op["kw"] <= INT32 // 255, "an average of too many")
        zeros = [whole(op["zero_x"], 0, 255)]
        rows = np.unique(counts_along(op["h"], op["kh"], op["stride_h"], op["pad_h"], op["oh"]))
        columns = np.unique(counts_along(op["w"], op["kw"], op["stride_w"], op["pad_w"], op["ow"]))
        require(rows.size * columns.size <= 1 << 14, "windows of too many sizes")
        counts = np.unique(np.outer(rows, columns)).tolist()
        means = list_of(op["means"], lambda m: members(m, ("count", "m0", "shift")), 1 << 14)
        require([whole(mean["count"]) for mean in means] == counts, "means")
        for mean in means:
            check_multiplier(whole(mean["m0"]), whole(mean["shift"]))
        step["means_codes"] = op["zero_x"] == read_y(op["y"])["zero_point"] and all(
            mean["count"] < 1 << 21
            and mean["shift"] == 30 + (mean["count"] - 1).bit_length()
            and mean["m0"] == (1 << mean["shift"]) // mean["count"] + 1
            for mean in means
        )
    if product:
        zeros = [op["zero_x"]]
    elif "y" in op:
        op["y"] = read_y(op["y"])
    if "y" in op:
        step["zero_y"] = op["y"]["zero_point"]
    require(max(sizes + [y_size]) <= MOST_ELEMENTS, "too many elements")
    step.update(sizes=sizes, zeros=zeros, y_size=y_size)
    if "weight_scale" in entry:
        scale = list_of(entry["weight_scale"], real32, MOST_VALUES)
        require(len(scale) in scales and min(scale) > 0, "scales of weights")
    return step


WINDOWED = ("quantized_conv2d", "quantized_max_pool2d", "quantized_avg_pool2d")


def check_step(step, values, written):
    require(step["output"] < len(values), "no such value")
    y = values[step["output"]]
    zeros, zero_y = step["zeros"], step["zero_y"]
    if step.get("means_codes") and step["inputs"] and step["inputs"][0] in written:
        if values[step["inputs"][0]].get("codes") == y.get("codes"):
            zeros, zero_y = [None], None
    require(len(step["inputs"]) == len(step["sizes"]), "number of inputs")
    one_bit = step["op"].get("x_bits") == 1
    for id, size, zero in zip(step["inputs"], step["sizes"], zeros):
        require(id in written, "reads what nothing wrote")
        x = values[id]
        require("codes" in x, "reads accumulators")
        require(x["size"] == size, "elements of an input")
        require(zero is None or zero == x["codes"]["zero"], "zero point of an input")
        bits = x["codes"]["bits"]
        require(not one_bit or (bits == 1 and not x["codes"]["signed"]), "x_bits of 1 for codes of %d bits" % bits)
    require(y["size"] == step["y_size"], "elements of the output")
    require(("scale" in y) == step["accumulators"], "codes or accumulators")
    require(step["output"] not in written, "written twice")
    written.add(step["output"])
    if step["accumulators"]:
        return
    x, y = values[step["inputs"][0]]["codes"], y["codes"]
    require(zero_y in (None, y["zero"]), "zero point of the output")
    if step["type"] in ("view", "gather", "quantized_max_pool2d"):
        require(x == y, "other codes than its input's")
        if step["op"].get("fills"):
            require(y["lo"] <= step["op"]["fill"] <= y["hi"], "a fill that the type does not have")
        return
    if step["type"] == "quantized_lookup":
        given = step["op"]["table"][:, x["lo"] : x["hi"] + 1]
        lo, hi = given.min(), given.max()
    else:
        lo, hi = step["op"]["y"]["lo"], step["op"]["y"]["hi"]
    require(y["lo"] <= lo and hi <= y["hi"], "codes that the type does not have")


def read(file):
    """Reads a network from the bytes of a file: values, inputs, outputs, steps. Raises Refused."""
    metadata, arrays = read_container(file)
    for key, expected in (("format", "quantrain-integer"), ("version", "2"), ("layout", "NHWC/OHWI")):
        require(metadata.get(key) == expected, key)
    require("network" in metadata, "no network")
    network = parse_json(metadata["network"].encode("utf-8"), 16)
    members(network, ("values", "inputs", "outputs", "steps"), ("constants",))
    tensors = Tensors(arrays)
    constants = Constants(network.get("constants", []), tensors)
    values = list_of(network["values"], read_value, MOST_STEPS)
    inputs = list_of(network["inputs"], whole, MOST_STEPS)
    outputs = list_of(network["outputs"], whole, MOST_STEPS)
    entries = list_of(network["steps"], lambda entry: entry, MOST_STEPS)
    steps = [read_step(entry, i, tensors, constants) for i, entry in enumerate(entries)]
    require(len(constants.used) == len(constants.constants), "a constant that no step uses")
    require(tensors.taken == set(arrays), "a tensor that belongs to no step")
    require(inputs and outputs, "no input, or no output")
    written = set()
    for id in inputs:
        require(id < len(values) and id not in written and "codes" in values[id], "an input")
        written.add(id)
    for id, value in enumerate(values):
        require("features" not in value or id in written, "features of a value that is no input")
    for step in steps:
        check_step(step, values, written)
    require(written == set(range(len(values))), "a value that nothing writes")
    require(all(id in written for id in outputs), "an output that nothing writes")
    return {"values": values, "inputs": inputs, "outputs": outputs, "steps": steps}


# --- Running it ---------------------------------------------------------------------------------


def requantize(acc, m0, shift, y):
    """Equation (8), with one multiplier for all, or one for each element of the last axis."""
    shift = np.asarray(shift, np.int64)
    rounded = (acc * m0 + (np.int64(1) << (shift - 1))) >> shift
    return np.clip(rounded + y["zero_point"], y["lo"], y["hi"])


def windows(op, x, outside):
    """Yields, for each tap of the kernel, the elements that the tap reads: [n, oh, ow, c]."""
    pad_h, pad_w = op["pad_h"], op["pad_w"]
    pad = ((0, 0), (pad_h, pad_h + op["end_h"]), (pad_w, pad_w + op["end_w"]), (0, 0))
    x = np.pad(x.reshape(-1, op["h"], op["w"], op["c"]), pad, constant_values=outside)
    for u in range(0, op["kh"] * op["dilation_h"], op["dilation_h"]):
        rows = x[:, u : u + (op["oh"] - 1) * op["stride_h"] + 1 : op["stride_h"]]
        for v in range(0, op["kw"] * op["dilation_w"], op["dilation_w"]):
            yield rows[:, :, v : v + (op["ow"] - 1) * op["stride_w"] + 1 : op["stride_w"]]


def convolve(op, x):
    groups, c, o = op["groups"], op["c"] // op["groups"], op["o"] // op["groups"]
    w = op["weight"].reshape(op["o"], op["kh"] * op["kw"], c)
    acc = 0
    for k, part in enumerate(windows(op, x - op["zero_x"], 0)):
        of_groups = [
            part[..., g * c : (g + 1) * c] @ w[g * o : (g + 1) * o, k].T for g in range(groups)
        ]
        acc = acc + np.concatenate(of_groups, axis=-1)
    return acc + op["bias"]


def average(op, x):
    acc = sum(windows(op, x - op["zero_x"], 0))
    rows = counts_along(op["h"], op["kh"], op["stride_h"], op["pad_h"], op["oh"])
    columns = counts_along(op["w"], op["kw"], op["stride_w"], op["pad_w"], op["ow"])
    counts = np.outer(rows, columns)[None, :, :, None]
    y = np.zeros_like(acc)
    for mean in op["means"]:
        y = np.where(counts == mean["count"], requantize(acc, mean["m0"], mean["shift"], op["y"]), y)
    return y


def run_step(step, x):
    """Computes the stored bytes or accumulators of n samples: [n, elements], as int64."""
    op, kind = step["op"], step["type"]
    n = x[0].shape[0]
    if kind == "view":
        y = x[0]
    elif kind == "gather":
        y = x[0].reshape([n, op["rows"]] + [axis["extent"] for axis in op["axes"]] + [op["run"]])
        for k, axis in enumerate(op["axes"]):
            y = np.take(y, axis["index"], axis=2 + k)  # -1 takes the last element, replaced below
        for k, axis in enumerate(op["axes"]):
            np.moveaxis(y, 2 + k, 0)[axis["index"] < 0] = op["fill"]
    elif kind == "quantized_lookup":
        channels = op["table"].shape[0]
        codes = x[0].reshape(n, -1, channels)
        y = op["table"][np.arange(channels), codes].reshape(n, -1)
    elif kind == "quantized_add":
        acc = sum((a - operand["zero_x"]) * operand["m"] for a, operand in zip(x, op["operands"]))
        y = requantize(acc, 1, op["shift"], op["y"])
    elif kind == "quantized_mul":
        a = x[0].reshape(n, op["rows"], op["channels"]) - op["zero_a"]
        b = x[1].reshape(n, 1, op["channels"]) - op["zero_b"]
        y = requantize(a * b, op["m0"], op["shift"], op["y"])
    elif kind == "quantized_concat":
        y = np.concatenate(
            [
                requantize(a.reshape(n, op["rows"], -1) - p["zero_x"], p["m0"], p["shift"], op["y"])
                for a, p in zip(x, op["parts"])
            ],
            axis=2,
        )
    elif kind == "quantized_softmax":
        rows = x[0].reshape(n, op["rows"], op["classes"])
        powers = op["powers"][rows.max(axis=2, keepdims=True) - rows]
        shares = powers * op["m0"] // powers.sum(axis=2, keepdims=True)
        y = requantize(shares, 1, op["shift"], op["y"])
    elif kind == "quantized_max_pool2d":
        y = np.maximum.reduce(list(windows(op, x[0], -1)))
    elif kind == "quantized_avg_pool2d":
        y = average(op, x[0])
    else:
        if kind == "quantized_linear":
            y = (x[0].reshape(-1, op["inputs"]) - op["zero_x"]) @ op["weight"].T + op["bias"]
        else:
            y = convolve(op, x[0])
        if "output" in op:
            y = requantize(y, op["m0"], op["shift"], op["y"])
    return y.reshape(n, -1)


def run(network, x):
    """x: stored bytes of each input, [n, elements]. Returns all values by number, each as from run_step."""
    values = dict(zip(network["inputs"], (np.asarray(a, np.int64) for a in x)))
    for step in network["steps"]:
        values[step["output"]] = run_step(step, [values[id] for id in step["inputs"]])
    return values


def output_integers(network, values, id):
    codes = network["values"][id].get("codes")
    return values[id] - codes["zero"] if codes else values[id]


def encode(value, x):
    """Converts raw floats of an input, [n, elements], to stored bytes: (20), (3)."""
    codes = value["codes"]
    z = np.asarray(x, np.float32)
    if "features" in value:
        offset, scale = value["features"]
        z = ((z.reshape(-1, scale.size) - offset) / scale).reshape(z.shape)
    # rint rounds to even. The clamp is in double, so a float32 far beyond the codes does no harm.
    code = np.rint(z / codes["scale"]).astype(np.float64) + codes["zero"]
    return np.clip(code, codes["lo"], codes["hi"]).astype(np.int64)
