# SPDX-License-Identifier: Apache-2.0
"""The draft-07 keywords that the shipped schema uses."""

import json
import re
from pathlib import Path
from typing import Any

from kvspectrum.reader.error import ConfigError, shown

SCHEMA = json.loads(Path(__file__).with_name("kvspectrum-config.schema.json").read_text(encoding="utf-8"))

_TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}


class _Violation(Exception):
    def __init__(self, place, problem):
        super().__init__(place)
        self.place, self.problem = place, problem


def _is_type(value, name):
    return isinstance(value, _TYPES[name]) and not isinstance(value, bool)


def _same(value, other):
    return type(value) is type(other) and value == other


def _fits(node, value):
    try:
        _check(node, value, "")
    except _Violation:
        return False
    return True


# For each keyword: a check of a value, and the words for an error.
_NUMBERS = {
    "minimum": (lambda value, limit: value >= limit, "at least"),
    "maximum": (lambda value, limit: value <= limit, "at most"),
    "exclusiveMinimum": (lambda value, limit: value > limit, "above"),
    "exclusiveMaximum": (lambda value, limit: value < limit, "below"),
    "multipleOf": (lambda value, limit: value % limit == 0, "a multiple of"),
}
_LISTS = {
    "minItems": (lambda value, limit: len(value) >= limit, "at least so many entries:"),
    "maxItems": (lambda value, limit: len(value) <= limit, "at most so many entries:"),
}
_STRINGS = {
    "minLength": (lambda value, limit: len(value) >= limit, "a length of at least"),
    "maxLength": (lambda value, limit: len(value) <= limit, "a length of at most"),
    "pattern": (lambda value, pattern: re.search(pattern.replace("$", r"\Z"), value), "what matches"),
}


def _check_value(node, value, place):
    types = node.get("type", [])
    types = types if isinstance(types, list) else [types]
    if types and not any(_is_type(value, name) for name in types):
        raise _Violation(place, f"found {shown(value)}, expected a value of type {' or '.join(types)}")
    allowed = [node["const"]] if "const" in node else node.get("enum")
    if allowed is not None and not any(_same(value, one) for one in allowed):
        raise _Violation(place, f"found {shown(value)}, expected one of {json.dumps(allowed)}")
    for name, rules in (("number", _NUMBERS), ("array", _LISTS), ("string", _STRINGS)):
        if _is_type(value, name):
            for keyword in rules.keys() & node.keys():
                fits, words = rules[keyword]
                if not fits(value, node[keyword]):
                    raise _Violation(place, f"found {shown(value)}, expected {words} {node[keyword]}")


def _check_parts(node, value, place):
    if isinstance(value, list) and "items" in node:
        for index, entry in enumerate(value):
            _check(node["items"], entry, f"{place}/{index}")
    if not isinstance(value, dict):
        return
    known = node.get("properties", {})
    for name in node.get("required", []):
        if name not in value:
            raise _Violation(f"{place}/{name}", "found nothing, expected this member")
    for name, member in value.items():
        if name in known:
            _check(known[name], member, f"{place}/{name}")
        elif node.get("additionalProperties", True) is False:
            raise _Violation(f"{place}/{name}", "found a member that is not known here, expected one of "
                                                + ", ".join(known))


def _check(node, value, place):
    if "$ref" in node:
        return _check(_target(node["$ref"]), value, place)
    _check_value(node, value, place)
    _check_parts(node, value, place)
    for part in node.get("allOf", []):
        _check(part, value, place)
    if "anyOf" in node and not any(_fits(one, value) for one in node["anyOf"]):
        raise _deepest(node["anyOf"], value, place)
    if "not" in node and _fits(node["not"], value):
        raise _Violation(place, f"found {shown(value)}, expected {node.get('description', 'another value')}")
    if "if" in node and _fits(node["if"], value):
        _check(node.get("then", {}), value, place)
    return None


def _deepest(alternatives, value, place):
    found = []
    for one in alternatives:
        try:
            _check(one, value, place)
        except _Violation as violation:
            found.append(violation)
    return max(found, key=lambda violation: violation.place.count("/"))


def _target(reference):
    node = SCHEMA
    for name in reference.removeprefix("#/").split("/"):
        node = node[name]
    return node


def parameters_of(method):
    """The schema of each parameter."""
    nodes = SCHEMA["definitions"][f"{method}_parameters"]["properties"]
    return {name: _target(node["$ref"]) if "$ref" in node else node for name, node in nodes.items()}


def check_schema(document, where):
    try:
        _check(SCHEMA, document, "")
    except _Violation as violation:
        raise ConfigError(f"{where}: {violation.place}: {violation.problem}") from None
