# SPDX-License-Identifier: Apache-2.0
"""Fills dataclasses from JSON documents of the programs."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def _found(value: Any) -> str:
    words = {dict: "an object", list: "a list", type(None): "null"}
    return words.get(type(value)) or repr(value)[:80]


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _members(kind: type, value: dict[str, Any], where: str) -> Any:
    members = {}
    for field in dataclasses.fields(kind):
        if not field.init or field.name.startswith("_"):
            continue
        if field.name in value:
            members[field.name] = from_json(_hints(kind)[field.name], value[field.name], f"{where}/{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{where}: found no member {field.name}")
    return kind(**members)


def _choice(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """@return the value as the first of `kinds` that it fits"""
    for kind in kinds:
        try:
            return from_json(kind, value, where)
        except ValueError as error:
            fault = error
    raise fault


def from_json(kind: Any, value: Any, where: str) -> Any:
    """The JSON `value` as `kind`: a dataclass, a list, a dict, a tuple, an optional, a number, a string, or Any.
    Members of objects that a dataclass does not have are left out: a newer program may write more.
    @param where  the file and the member, for errors
    @raises ValueError of one line"""
    if kind is Any:
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _choice(arguments, value, where)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        return _members(kind, value, where)
    if origin is list and isinstance(value, list):
        return [from_json(arguments[0], one, f"{where}/{index}") for index, one in enumerate(value)]
    if origin is tuple and isinstance(value, list) and len(value) == len(arguments):
        return tuple(from_json(one, each, where) for one, each in zip(arguments, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {name: from_json(arguments[1], one, f"{where}/{name}") for name, one in value.items()}
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and origin is None and type(value) is kind:
        return value
    raise ValueError(f"{where}: found {_found(value)}, expected {getattr(kind, '__name__', kind)}")
