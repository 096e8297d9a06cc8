# SPDX-License-Identifier: Apache-2.0
"""Captures: the queries, keys and values of a model on texts, as NumPy arrays. Needs h5py (`kvspectrum[capture]`)."""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kvspectrum.programs import Listener, Option

STATES = ("q_pre", "k_pre", "k_post", "v")


def _plain(value: Any) -> Any:
    """An attribute as a Python value."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return value.decode() if isinstance(value, bytes) else value


def _whole(name: str, value: Any) -> int:
    """@raises TypeError for anything but a whole number"""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: found {value!r}, expected a whole number")
    return operator.index(value)


def _h5py() -> Any:
    """@raises ImportError that names the extra"""
    try:
        import h5py
    except ImportError as error:
        raise ImportError("Capture needs h5py: pip install 'kvspectrum[capture]'") from error
    return h5py


class Capture:
    """A file of `kvspectrum capture` (docs/captures.md), opened for reading.

    >>> with Capture("book.h5") as capture:
    ...     keys = capture.states("k_pre", layer=3)  # document 0: [kv_head, token, head_dim]

    len(capture) is the number of documents. `layers` are the layers of the model that the file holds, `stored` its
    states. `query_heads`, `kv_heads` and `head_dim` are numbers, or lists with one for each layer of the model.
    `attributes` are those of the file: RoPE's frequencies, the model's digest."""

    def __init__(self, path: str | os.PathLike[str]):
        """@raises ImportError without h5py; ValueError if the file is no capture, or an unfinished one"""
        h5py = _h5py()
        self.path = Path(path)
        try:
            self._file = h5py.File(self.path, "r")
        except FileNotFoundError:
            raise
        except OSError as error:
            problem = "a truncated file" if "truncated" in str(error) else "no HDF5 file"
            raise ValueError(f"{self.path}: found {problem}, expected a capture") from error
        self.attributes: dict[str, Any] = {name: _plain(value) for name, value in self._file.attrs.items()}
        try:
            self._check()
        except ValueError:
            self._file.close()
            raise

    def _check(self) -> None:
        if self.attributes.get("format") != "kvspectrum-capture":
            raise ValueError(f"{self.path}: found format {self.attributes.get('format')}, expected kvspectrum-capture")
        if not self.attributes.get("complete"):
            raise ValueError(f"{self.path}: found an unfinished capture; `kvspectrum capture … --resume` finishes it")

    @classmethod
    def record(cls, model: str | os.PathLike[str], text: Option, out: str | os.PathLike[str], *,
               states: Sequence[str] = ("k_pre", "v"), layers: str | Sequence[int] | None = None,
               window: int | None = None, documents: int | None = None, progress: Listener | bool = True,
               **options: Option) -> Capture:
        """Runs texts through a model and stores its states: `kvspectrum capture`.
        @param model      GGUF file, or folder with config.json and safetensors
        @param text       one or more files or folders of text; None with `tokens_file`
        @param out        the file to write
        @param states     any of q_pre [query_head, token, head_dim], k_pre, k_post and v [kv_head, token, head_dim];
                          `pre` is before RoPE, `post` after it
        @param layers     such as "0,14-16"; None: all
        @param window     tokens of a document; None: 1,024
        @param documents  the most documents; None: all
        @param progress   see run_program()
        @param options    other options of the command: force=True, state_dtype="bf16"
        @raises ImportError without h5py; ProgramError if the program refuses or fails"""
        from kvspectrum.programs import option_words, run_program

        _h5py()  # before the run
        run_program("kvspectrum", ["capture", *option_words({
            "model": model, "text": text, "out": out, "states": states, "layers": layers, "window": window,
            "documents": documents, **options})], progress)
        return cls(out)

    def verify(self) -> None:
        """Checks every byte of the file: `kvspectrum verify`.
        @raises ProgramError if a checksum does not match or there is no manifest"""
        from kvspectrum.programs import run_program

        run_program("kvspectrum", ["verify", str(self.path)], progress=True)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self.attributes["documents"])

    def __repr__(self) -> str:
        if not self._file:
            return f"Capture({str(self.path)!r}: closed)"
        return (f"Capture({str(self.path)!r}: {self.attributes['model_name']}, {len(self)} documents of "
                f"{self.tokens_per_document} tokens, {', '.join(self.stored)})")

    @property
    def tokens_per_document(self) -> int:
        return int(self.attributes["tokens"])

    @property
    def layers(self) -> list[int]:
        return list(self.attributes["layers"])

    @property
    def stored(self) -> list[str]:
        """The states that the file holds."""
        group = self._file[f"doc/00000/layer/{self.layers[0]:02}"]
        return [state for state in STATES if state in group]

    @property
    def query_heads(self) -> int | list[int]:
        return self.attributes["query_heads"]

    @property
    def kv_heads(self) -> int | list[int]:
        return self.attributes["kv_heads"]

    @property
    def head_dim(self) -> int | list[int]:
        return self.attributes["head_dim"]

    def _dataset(self, name: str) -> Any:
        if not self._file:
            raise ValueError(f"{self.path}: found a closed capture, expected an open one")
        if name not in self._file:
            raise KeyError(f"{self.path}: found no {name}, expected one of {len(self)} documents, of the layers "
                           f"{self.layers} and of the states {', '.join(self.stored)}")
        return self._file[name]

    def tokens(self, document: int = 0) -> NDArray[np.int32]:
        """The ids of a document's tokens: [token]."""
        return self._dataset(f"doc/{_whole('document', document):05}/tokens")[()]

    def nll(self, document: int = 0) -> NDArray[np.float32]:
        """[token - 1], nats: entry t belongs to token t + 1 given tokens 0 … t."""
        return self._dataset(f"doc/{_whole('document', document):05}/nll")[()]

    def states(self, state: str, layer: int, document: int = 0) -> NDArray[Any]:
        """The states of one layer, in the units of the model's activations.
        @param state  q_pre, k_pre, k_post or v
        @return [query_head or kv_head, token, head_dim]. f32 and f16: a read-only view of the file, which reads only
                what is used; bf16: a copy in f32
        @raises KeyError for a state, layer or document that the file does not hold; TypeError for a layer or document
                that is no whole number; ValueError after close()"""
        import numpy as np

        data = self._dataset(
            f"doc/{_whole('document', document):05}/layer/{_whole('layer', layer):02}/{state}")
        if _plain(data.attrs.get("dtype")) == "bfloat16":
            return (data[()].astype(np.uint32) << 16).view(np.float32)
        offset = data.id.get_offset()
        if offset is None:  # not contiguous: a program other than ours wrote it
            return data[()]
        return np.memmap(self.path, data.dtype, "r", offset, data.shape)
