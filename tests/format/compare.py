"""compare.py SAVE_NETWORKS WORK: compares docs/format.md with the engine.

The reader computes the integers of each saved network; every step and output must equal the engine's. Then files are
damaged, number by number and rule by rule; reader and engine must refuse the same files.
"""

import copy
import json
import os
import shutil
import subprocess
import sys

import numpy as np

import reader


def compare(folder):
    """Returns how many integers were compared. Ends the program at the first difference."""
    with open(os.path.join(folder, "model"), "rb") as file:
        network = reader.read(file.read())
    count = 0

    def expect(name, dtype, values):
        expected = np.fromfile(os.path.join(folder, name), dtype)
        different = np.flatnonzero(expected != values.reshape(-1))
        if different.size:
            i = different[0]
            sys.exit(
                "%s: %s: element %d is %d, the engine's is %d"
                % (folder, name, i, values.reshape(-1)[i], expected[i])
            )
        return expected.size

    x = []
    for i, id in enumerate(network["inputs"]):
        value = network["values"][id]
        x.append(np.fromfile(os.path.join(folder, "input%d" % i), "u1").reshape(-1, value["size"]))
        raw = np.fromfile(os.path.join(folder, "raw%d" % i), "<f4").reshape(-1, value["size"])
        count += expect("encoded%d" % i, "u1", reader.encode(value, raw))
    values = reader.run(network, x)
    for i, step in enumerate(network["steps"]):
        count += expect("step%d" % i, "<i4" if step["accumulators"] else "u1", values[step["output"]])
    for i, id in enumerate(network["outputs"]):
        count += expect("output%d" % i, "<i4", reader.output_integers(network, values, id))
    return count


# --- Damaged files ------------------------------------------------------------------------------

DTYPES = {"<f8": "F64", "<f4": "F32", "<i8": "I64", "<i4": "I32", "|i1": "I8", "|u1": "U8"}


def container(metadata, tensors):
    header = {"__metadata__": metadata}
    data = b""
    for name, array in tensors.items():
        entry = {"dtype": DTYPES[array.dtype.str], "shape": list(array.shape)}
        header[name] = dict(entry, data_offsets=[len(data), len(data) + array.nbytes])
        data += array.tobytes()
    return header, data


def to_bytes(header, data, length=None):
    text = header if type(header) is bytes else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def places(value, path=()):
    """The paths of all parts of a JSON value."""
    yield path
    for key in value if type(value) is dict else range(len(value)) if type(value) is list else ():
        yield from places(value[key], path + (key,))


def edited(network, path, change):
    network = copy.deepcopy(network)
    holder = network
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return network


def network_damages(network):
    """Replaces and removes every value, adds a member to every object, and makes every list longer."""
    for path in places(network):
        if not path:
            continue
        value = network
        for key in path:
            value = value[key]
        other = [None, "7", [], {}, True, -1, 0, 1, 1.0, 1e999, 2**20 + 1, 2**30 + 1, 2**31 - 1, 2**31, 2**63, 2**70]
        if type(value) in (int, float) and type(value) is not bool:
            other += [value + 1, value - 1, -value, value * 2, value + 0.5, float(value)]
        if type(value) is bool:
            other += [not value]
        for new in other:
            if type(new) is type(value) and new == value:
                continue
            yield "%s = %r" % (path, new), edited(network, path, lambda h, k: h.__setitem__(k, new))
        yield "%s gone" % (path,), edited(network, path, lambda h, k: h.__delitem__(k))
        if type(value) is dict:
            yield "%s more" % (path,), edited(network, path, lambda h, k: h[k].__setitem__("more", 1))
        if type(value) is list and value:
            yield "%s longer" % (path,), edited(network, path, lambda h, k: h[k].append(copy.deepcopy(h[k][-1])))
    yield "more", dict(network, more=1)


def tensor_damages(tensors):
    for name, array in tensors.items():
        others = {
            "gone": None,
            "of floats": array.astype("<f4"),
            "of 64 bits": array.astype("<i8"),
            "of two axes": array.reshape(-1, 1),
            "empty": array[:0],
            "longer": np.append(array, array[-1:]),
            "shorter": array[:-1],
        }
        info = np.iinfo(array.dtype)
        for number in (info.min, -1, 0, 1, 62, 63, (1 << 30) - 1, 1 << 30, info.max):
            if info.min <= number <= info.max:
                changed = array.copy()
                changed[0] = number
                others["begins with %d" % number] = changed
        for what, other in others.items():
            changed = dict(tensors)
            changed[name] = other
            if other is None:
                del changed[name]
            yield "%s %s" % (name, what), changed
    yield "a tensor more", dict(tensors, more=np.zeros(1, "u1"))
    yield "tensors in reverse", dict(reversed(list(tensors.items())))


def container_damages(metadata, tensors):
    header, data = container(metadata, tensors)
    name = next(iter(tensors))

    def entry(**changes):
        return to_bytes(dict(header, **{name: dict(header[name], **changes)}), data)

    yield "as it is", to_bytes(header, data)
    yield "spaces inside and after", to_bytes(json.dumps(header, indent=2).encode() + b" \n\t", data)
    yield "a space in front", to_bytes(b" " + json.dumps(header).encode(), data)
    yield "a byte order mark", to_bytes(b"\xef\xbb\xbf" + json.dumps(header).encode(), data)
    marked = dict(metadata, network="\ufeff" + metadata["network"])
    yield "a byte order mark in front of the network", to_bytes(dict(header, __metadata__=marked), data)
    yield "nothing", b""
    yield "seven bytes", b"\0" * 7
    yield "no object", to_bytes(b"[]", data)
    yield "no metadata", to_bytes({k: v for k, v in header.items() if k != "__metadata__"}, data)
    yield "not JSON", to_bytes(json.dumps(header).encode() + b"}", data)
    yield "a NUL after the header", to_bytes(json.dumps(header).encode() + b"\0", data)
    yield "text after a NUL", to_bytes(json.dumps(header).encode() + b'\0{"hidden": 1}', data)
    yield "not UTF-8", to_bytes(json.dumps(header).encode().replace(b'"name"', b'"n\xffme"'), data)
    yield "half a character", to_bytes(dict(header, __metadata__=dict(metadata, x="\ud800")), data)
    yield "cut", to_bytes(header, data[:-1])
    yield "longer", to_bytes(header, data + b"\0")
    yield "a long header", to_bytes(header, data, 1 << 24)
    yield "a header of 2^63", to_bytes(header, data, 1 << 63)
    yield "deep", to_bytes(dict(header, __metadata__={"x": [[[1]]]}), data)
    twice = json.dumps(header)[:-1] + ', "%s": %s}' % (name, json.dumps(header[name]))
    yield "twice", to_bytes(twice.encode(), data)
    yield "a number as metadata", to_bytes(dict(header, __metadata__=dict(metadata, x=1)), data)
    yield "more metadata", to_bytes(dict(header, __metadata__=dict(metadata, x="1")), data)
    for key in ("format", "version", "layout", "network"):
        yield key + " gone", to_bytes(
            dict(header, __metadata__={k: v for k, v in metadata.items() if k != key}), data
        )
        yield key + " other", to_bytes(dict(header, __metadata__=dict(metadata, **{key: "1"})), data)
    yield "an unknown dtype", entry(dtype="BF16")
    yield "nine axes", entry(shape=[1] * 8 + header[name]["shape"])
    yield "a negative extent", entry(shape=[-1])
    yield "another shape", entry(shape=[1, 1])
    yield "a member more", entry(more=1)
    begin, end = header[name]["data_offsets"]
    yield "an overlap", entry(data_offsets=[begin + 4, end + 4])
    yield "beyond the data", entry(data_offsets=[len(data), len(data) + end - begin])
    yield "backwards", entry(data_offsets=[end, begin])
    yield "one offset", entry(data_offsets=[begin])


def early(metadata, tensors):
    """The file as early versions of 0.2 wrote it, without constants."""
    network = json.loads(metadata["network"])
    constants = network.pop("constants")
    result = {name: array for name, array in tensors.items() if not name.startswith("constants.")}
    for i, step in enumerate(network["steps"]):
        members = step["members"]
        if "weight" not in members:
            continue
        k = members.pop("weight")
        bits, count = constants[k]["bits"], constants[k]["count"]
        width = 2 if bits == 2 else 4 if bits <= 4 else 8
        codes, _ = reader.unpack(tensors["constants.%d" % k], bits, count)
        fields = (codes[:, None] >> np.arange(width)) & 1
        result["%d.weight" % i] = np.packbits(fields.reshape(-1).astype("u1"), bitorder="little")
        members.update(weight_bits=bits, weights=count)
        if "bias" in members:
            result["%d.bias" % i] = tensors["constants.%d" % members.pop("bias")]
    return dict(metadata, network=json.dumps(network)), result


def damaged(file, is_early=False):
    metadata, tensors = reader.read_container(file)
    if is_early:
        metadata, tensors = early(metadata, tensors)
    network = json.loads(metadata["network"])
    for what, other in network_damages(network):
        yield what, to_bytes(*container(dict(metadata, network=json.dumps(other)), tensors))
    for what, other in tensor_damages(tensors):
        yield what, to_bytes(*container(metadata, other))
    yield from container_damages(metadata, tensors)


def refuses(file):
    try:
        reader.read(file)
        return None
    except reader.Refused as error:
        return str(error)


def main(save_networks, work):
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    subprocess.run([save_networks, "write", work], check=True)
    names = sorted(os.listdir(work))
    integers = sum(compare(os.path.join(work, name)) for name in names)
    print("%d networks: all of %d integers are the engine's" % (len(names), integers))

    whats, answers = [], []
    folder = os.path.join(work, "damaged")
    os.makedirs(folder)
    late = [(name, False) for name in ("features", "mlp", "uneven", "shared", "binary")]
    for name, is_early in late + [("shared", True)]:
        with open(os.path.join(work, name, "model"), "rb") as model:
            for what, file in damaged(model.read(), is_early):
                with open(os.path.join(folder, str(len(whats))), "wb") as out:
                    out.write(file)
                whats.append(name + ": " + what)
                answers.append(refuses(file))
    paths = "".join(os.path.join(folder, "%d\n" % i) for i in range(len(whats)))
    check = subprocess.run([save_networks, "check"], input=paths.encode(), stdout=subprocess.PIPE, check=True)
    engine = check.stdout.decode(errors="replace").split("\n")[:-1]
    different = 0
    for i, (what, mine, its) in enumerate(zip(whats, answers, engine)):
        if (mine is None) != (its == "accepted"):
            different += 1
            print("%s (%s): the engine: %s; the reader: %s" % (what, i, its, mine or "accepted"))
    refused = sum(answer is not None for answer in answers)
    print("%d damaged files: %d refused, %d answers differ" % (len(whats), refused, different))
    shutil.rmtree(folder)
    sys.exit(different > 0 or len(engine) != len(whats) or refused < 1000)


if __name__ == "__main__":
    main(*sys.argv[1:])
