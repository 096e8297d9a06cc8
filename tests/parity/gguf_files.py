# SPDX-License-Identifier: Apache-2.0
"""Reads and writes whole GGUF files of F32 tensors as Python values, which tests change in between."""
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
ALIGNMENT = 32


class File:
    """keys: name → (type, value), an array's value is (type, values); tensors: name → (shape with rows first, type,
    bytes)."""

    def __init__(self):
        self.keys, self.tensors = {}, {}

    def bytes(self):
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(self.tensors), len(self.keys))
        for key, (kind, value) in self.keys.items():
            head += text(key) + struct.pack("<I", kind) + packed(kind, value)
        data = b""
        for name, (shape, kind, values) in self.tensors.items():
            head += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", size) for size in shape[::-1])
            head += struct.pack("<IQ", int(kind), len(data))
            data += padded(values)
        return padded(head) + data


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def packed(kind, value):
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        of, values = value
        return struct.pack("<IQ", of, len(values)) + b"".join(packed(of, each) for each in values)
    return struct.pack("<" + FORMATS[kind], value)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, format):
        values = struct.unpack_from("<" + format, self.data, self.at)
        self.at += struct.calcsize("<" + format)
        return values[0] if len(values) == 1 else values

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            of, count = self.take("IQ")
            return of, [self.value(of) for _ in range(count)]
        return self.take(FORMATS[kind])


def read(path):
    """Reads a file of version 3 with the usual alignment and F32 tensors."""
    reader, file = Reader(path.read_bytes()), File()
    _, _, tensors, keys = reader.take("4sIQQ")
    for _ in range(keys):
        name, kind = reader.text(), reader.take("I")
        file.keys[name] = kind, reader.value(kind)
    headers = []
    for _ in range(tensors):
        name, axes = reader.text(), reader.take("I")
        shape = tuple(reader.take("Q") for _ in range(axes))[::-1]
        headers.append((name, shape, *reader.take("IQ")))
    start = reader.at + -reader.at % ALIGNMENT
    for name, shape, kind, offset in headers:
        size = 4
        for extent in shape:
            size *= extent
        file.tensors[name] = shape, kind, reader.data[start + offset:start + offset + size]
    return file
