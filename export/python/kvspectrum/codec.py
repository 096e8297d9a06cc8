# SPDX-License-Identifier: Apache-2.0
"""libkvspectrum_codec (docs/codec.md): blocks of keys and values as streams of bytes, for NumPy arrays and torch
tensors of the CPU, which are read and written where they are."""

import ctypes
import ctypes.util
import os
import sys
from pathlib import Path

from kvspectrum.reader import ConfigError, read_config

VERSION = 1  # of kvspectrum/codec.h
_FILE = "libkvspectrum_codec.so"
_STATUSES = ("ok", "argument", "config", "model", "stream", "space", "memory", "internal")
_TYPES = {"float32": 0, "float16": 1, "bfloat16": 2}
_u32, _u64, _size, _pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p


class CodecError(ValueError):
    """One line: where, what was found, what was expected.
    @member status  "argument", "config", "model", "stream", "space", "memory" or "internal\""""

    def __init__(self, line, status):
        super().__init__(line)
        self.status = status


class _Struct(ctypes.Structure):
    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name, *_ in self._fields_)})"


class _Options(_Struct):
    _fields_ = [("layers", _u32), ("kv_heads", ctypes.POINTER(_u32)), ("head_dim", ctypes.POINTER(_u32)),
                ("sha256", ctypes.c_char_p), ("threads", _u32), ("device", ctypes.c_char_p)]


class Layout(_Struct):
    """kvs_codec_layout: sizes of a layer."""

    _fields_ = [("rows", _u32), ("kv_heads", _u32), ("head_dim", _u32), ("sinks", _u64), ("recent", _u64),
                ("outliers", ctypes.c_double), ("head_bytes", _size), ("sink_bytes", _size), ("token_bytes", _size),
                ("outlier_bytes", _size)]


class Group(_Struct):
    """kvs_codec_group: layers that are coded together, and sizes of their streams."""

    _fields_ = [("_layers", ctypes.POINTER(_u32)), ("count", _u32), ("form", _u32), ("rows", _u32), ("kv_heads", _u32),
                ("head_dim", _u32), ("channels", _u32), ("block_tokens", _u32), ("sinks", _u64), ("recent", _u64),
                ("outliers", ctypes.c_double), ("head_bytes", _size), ("sink_bytes", _size), ("token_bytes", _size),
                ("outlier_bytes", _size)]
    layers: tuple[int, ...] = ()


class _Block(_Struct):
    _fields_ = [("layer", _u32), ("tokens", _u32), ("first_position", _u64), ("coded_before", _u64),
                ("outliers_before", _u64)]


class _States(_Struct):
    _fields_ = [("k", _pointer), ("v", _pointer), ("k_token_stride", _size), ("k_head_stride", _size),
                ("v_token_stride", _size), ("v_head_stride", _size), ("type", _u32), ("rotated", _u32)]


class _Inputs(_Struct):
    _fields_ = [("x", _pointer), ("token_stride", _size), ("type", _u32), ("channels", _u32)]


class _Queries(_Struct):
    _fields_ = [("q", _pointer), ("head_stride", _size), ("type", _u32), ("heads", _u32), ("scale", ctypes.c_float),
                ("softcap", ctypes.c_float)]


class Content(_Struct):
    """kvs_codec_stream: what a stream holds."""

    _fields_ = [("layer", _u32), ("tokens", _u32), ("first_position", _u64), ("sinks", _u32), ("outliers", _u32)]


def library_path():
    """KVSPECTRUM_LIBRARY (the file, or its folder); the library next to this package; where `cmake --install` puts it.
    @raises OSError where it is in none of these"""
    given = os.environ.get("KVSPECTRUM_LIBRARY")
    if given:
        found = Path(given) / _FILE if Path(given).is_dir() else Path(given)
        if not found.is_file():
            raise OSError(f"KVSPECTRUM_LIBRARY: found no file {found}, expected {_FILE} or its folder")
        return str(found)
    here = Path(__file__).resolve().parent
    folders = [here, here.parent, *(Path(base) / lib for base in (sys.prefix, "/usr/local", "/usr")
                                    for lib in ("lib", "lib64"))]
    for folder in folders:
        if (folder / _FILE).is_file():
            return str(folder / _FILE)
    if listed := ctypes.util.find_library("kvspectrum_codec"):
        return listed
    raise OSError(f"{_FILE}: found nothing next to {here} and in the folders of libraries, expected it where "
                  "`cmake --install` puts it, or its path in KVSPECTRUM_LIBRARY")


_loaded: dict[str, ctypes.CDLL] = {}


def _library():
    path = library_path()
    if path not in _loaded:
        library = ctypes.CDLL(path)
        library.kvs_codec_error.restype = ctypes.c_char_p
        library.kvs_codec_close.argtypes = [_pointer]
        for name, *arguments in (("open", _u32, ctypes.c_char_p, _pointer, _pointer),
                                 ("layout_of", _pointer, _u32, _pointer), ("group_of", _pointer, _u32, _pointer),
                                 ("bound", _pointer, _pointer, _pointer),
                                 ("encode_group", _pointer, _pointer, _pointer, _pointer, _pointer, _size, _pointer),
                                 ("inspect", _pointer, _pointer, _size, _pointer),
                                 ("decode_group", _pointer, _pointer, _size, _u32, _u32, _pointer, _pointer),
                                 ("attend", _pointer, _pointer, _size, _u32, _u32, _pointer, _pointer, _pointer)):
            getattr(library, f"kvs_codec_{name}").argtypes = arguments
        if (found := library.kvs_codec_version()) != VERSION:
            raise OSError(f"{path}: found version {found}, expected {VERSION}")
        _loaded[path] = library
    return _loaded[path]


def opened(config, threads):
    """The Codec of a config, None where there is no library."""
    try:
        return Codec(config, threads=threads)
    except OSError:
        return None


def _view(array, name, axes="kv_head, token, head_dim"):
    """@return address, shape, strides in elements, type of a NumPy array or a torch tensor"""
    kind = str(array.dtype).removeprefix("torch.")
    if kind not in _TYPES:
        raise CodecError(f"{name}: found {kind}, expected {', '.join(_TYPES)}", "argument")
    if hasattr(array, "data_ptr"):
        if array.device.type != "cpu":
            raise CodecError(f"{name}: found a tensor on {array.device}, expected one on the CPU", "argument")
        address, strides = array.data_ptr(), array.stride()
    else:
        address, strides = array.__array_interface__["data"][0], [step // array.itemsize for step in array.strides]
    if len(array.shape) != len(axes.split(",")) or strides[-1] != 1 or min(strides) < 0:
        raise CodecError(f"{name}: found shape {tuple(array.shape)} with strides {tuple(strides)}, expected [{axes}] "
                         "with values of the last axis next to each other", "argument")
    return address, tuple(array.shape), strides, _TYPES[kind]


def _result(array, name, axes, shape):
    """@return the address of an f32 array of that shape without gaps, for results"""
    address, found, strides, kind = _view(array, name, axes)
    if found != shape or kind != _TYPES["float32"] or len(shape) == 2 and strides[0] != shape[1]:
        raise CodecError(f"{name}: found shape {found} of {array.dtype} with strides {tuple(strides)}, expected "
                         f"{shape} of float32 without gaps", "argument")
    return address


class Codec:
    """A config of `kvcalibrate transform`, open. Any number of threads may use it at the same time.
    @param kv_heads, head_dim  [layer] of the caller's model; absent: those of the config, without a check
    @param sha256  the digest of the model's weights; absent: any weights
    @member config  the document of the config
    @raises CodecError, ConfigError, OSError without a library"""

    def __init__(self, config, kv_heads=None, head_dim=None, sha256=None, threads=0):
        self._library, self._codec = _library(), _pointer()  # a null pointer: closed
        self.config = read_config(config)
        model = self.config["model"]
        without = model.get("layers_without_cache", [])

        def sizes(given, name):
            found = given
            if found is None:
                of = model[name]
                found = [0 if n in without else of[n] if isinstance(of, list) else of for n in range(model["layers"])]
            return found, (_u32 * len(found))(*found)

        (heads, heads_array), (_, dim_array) = sizes(kv_heads, "kv_heads"), sizes(head_dim, "head_dim")
        options = _Options(len(heads), heads_array, dim_array, sha256.encode() if sha256 else None, threads, None)
        self._call("open", VERSION, os.fsencode(config), ctypes.byref(options), ctypes.byref(self._codec))

    def close(self):
        if getattr(self, "_codec", None):
            self._library.kvs_codec_close(self._codec)
            self._codec = _pointer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    __del__ = close

    def _call(self, name, *arguments):
        if status := getattr(self._library, f"kvs_codec_{name}")(*arguments):
            raise CodecError(self._library.kvs_codec_error().decode(), _STATUSES[status])

    def layout(self, layer):
        """The Layout of a layer that is coded alone, with random access."""
        layout = Layout()
        self._call("layout_of", self._codec, layer, ctypes.byref(layout))
        return layout

    def group(self, layer):
        """The Group of a layer, often of this one alone; `layers` are its layers."""
        group = Group()
        self._call("group_of", self._codec, layer, ctypes.byref(group))
        group.layers = tuple(group._layers[:group.count])
        return group

    def bound(self, layer, tokens, first_position=0, coded_before=0, outliers_before=0):
        """The largest size of a stream of encode_group()."""
        return self._bound(_Block(layer, tokens, first_position, coded_before, outliers_before))

    def _bound(self, block):
        bound = _size()
        self._call("bound", self._codec, ctypes.byref(block), ctypes.byref(bound))
        return bound.value

    def _states(self, group, states, inputs, rotated):
        """@return the number of tokens; the structs of states and of inputs"""
        if len(states) != group.count:
            raise CodecError(f"states: found {len(states)} pairs of k and v, expected one for each of layers "
                             f"{', '.join(map(str, group.layers))}", "argument")
        structs, tokens = (_States * len(states))(), states[0][0].shape[1] if len(states[0][0].shape) > 1 else 0
        for n, (k, v) in enumerate(states):
            (k_at, k_shape, k_steps, kind), (v_at, v_shape, v_steps, v_kind) = _view(k, "k"), _view(v, "v")
            expected = (group.kv_heads, tokens, group.head_dim)
            if k_shape != expected or v_shape != expected or kind != v_kind:
                raise CodecError(f"k, v: found {k_shape} and {v_shape}, expected {expected} of one type", "argument")
            structs[n] = _States(k_at, v_at, k_steps[1], k_steps[0], v_steps[1], v_steps[0], kind, int(rotated))
        if inputs is None or group.channels == 0:
            return tokens, structs, None
        at, shape, steps, kind = _view(inputs, "inputs", "token, channel")
        if shape != (tokens, group.channels):
            raise CodecError(f"inputs: found {shape}, expected {(tokens, group.channels)}", "argument")
        return tokens, structs, ctypes.byref(_Inputs(at, steps[0], kind, shape[1]))

    def encode(self, layer, k, v, first_position=0, rotated=False, coded_before=0, outliers_before=0):
        """The stream of a block of consecutive tokens of a layer that is coded alone, as bytes.
        @param k, v  [kv_head, token, head_dim] in f32, f16 or bf16
        @param rotated  whether keys are after RoPE
        @param coded_before, outliers_before  of the blocks that share the budget of outliers"""
        return self.encode_group(layer, [(k, v)], None, first_position, rotated, coded_before, outliers_before)

    def encode_group(self, layer, states, inputs=None, first_position=0, rotated=False, coded_before=0,
                     outliers_before=0):
        """The stream of a block of consecutive tokens of a group, as bytes.
        @param layer  any one of the group
        @param states  (k, v) of each layer of the group
        @param inputs  [token, channel] where rows are predicted: what the first layer projects to queries, keys and
        values; the embedding after the layer's norm"""
        tokens, structs, predicted = self._states(self.group(layer), states, inputs, rotated)
        block = _Block(layer, tokens, first_position, coded_before, outliers_before)
        bound, size = self._bound(block), _size()
        stream = ctypes.create_string_buffer(bound)
        self._call("encode_group", self._codec, ctypes.byref(block), structs, predicted, stream, bound,
                   ctypes.byref(size))
        return ctypes.string_at(stream, size.value)

    def inspect(self, stream):
        """The Content of a stream, all of which is checked but the codes."""
        content = Content()
        self._call("inspect", self._codec, stream, len(stream), ctypes.byref(content))
        return content

    def decode(self, stream, k, v, first=0, rotated=False):
        """Writes tokens of a stream of one layer, from `first` on, to k and v [kv_head, token, head_dim]: as many as
        these hold."""
        self.decode_group(stream, [(k, v)], None, first, rotated)

    def decode_group(self, stream, states, inputs=None, first=0, rotated=False):
        """Writes tokens of a stream, from `first` on, to the k and v of each layer of its group: as many as these hold.
        @param inputs  of these tokens, as in encode_group()"""
        group = self.group(self.inspect(stream).layer)
        tokens, structs, predicted = self._states(group, states, inputs, rotated)
        self._call("decode_group", self._codec, stream, len(stream), first, tokens, structs, predicted)

    def attend(self, stream, q, out, log_sums, scale=None, first=0, tokens=None, softcap=0.0):
        """Attention of one token's queries, after RoPE, over tokens of a stream with rows by head, from `first` on.
        Attentions over parts of a text join: Σ w · out / Σ w with w = exp(log_sums − m), for any m.
        @param q  [query_head, head_dim] in f32, f16 or bf16
        @param out, log_sums  f32 [query_head, head_dim] and [query_head], which are written: log_sums has the logarithm
        of the sum of exp(score)
        @param scale  of scores; absent: 1 / √head_dim
        @param tokens  absent: all from `first` on
        @param softcap  above 0: scores s become softcap · tanh(s / softcap)"""
        content = self.inspect(stream)
        at, (heads, head_dim), steps, kind = _view(q, "q", "query_head, head_dim")
        if head_dim != (expected := self.layout(content.layer).head_dim):
            raise CodecError(f"q: found head_dim {head_dim}, expected {expected}", "argument")
        queries = _Queries(at, steps[0], kind, heads, head_dim ** -0.5 if scale is None else scale, softcap)
        results = (_result(out, "out", "query_head, head_dim", (heads, head_dim)),
                   _result(log_sums, "log_sums", "query_head", (heads,)))
        count = content.tokens - first if tokens is None else tokens
        if first < 0 or count < 1 or first + count > content.tokens:
            raise CodecError(f"first, tokens: found {first} and {count}, expected some of {content.tokens} tokens",
                             "argument")
        self._call("attend", self._codec, stream, len(stream), first, count, ctypes.byref(queries), *results)


__all__ = ["Codec", "CodecError", "ConfigError", "Content", "Group", "Layout", "library_path"]
