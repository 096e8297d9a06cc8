# SPDX-License-Identifier: Apache-2.0
"""The rules `lists` of the schema: what draft-07 cannot say of lists and of members that belong together."""

from itertools import pairwise

from kvspectrum.reader.error import ConfigError, shown
from kvspectrum.reader.schema import SCHEMA, parameters_of

_KINDS = {"array": list, "object": dict}


def _largest(value):
    return max(value, default=0) if isinstance(value, list) else value


class _Rules:
    def __init__(self, document, where):
        self.document, self.where = document, where
        layers = self.value_of("/parameters/layers")
        self.layers = [layers] if isinstance(layers, int) else layers

    def refuse(self, place, problem):
        raise ConfigError(f"{self.where}: {place}: {problem}")

    def find(self, place):
        """None: not there, or null"""
        node = self.document
        for part in place[1:].split("/"):
            node = node.get(part) if isinstance(node, dict) else None
        return node

    def value_of(self, place):
        """The value at a place, or a parameter's default."""
        found = self.find(place)
        if found is not None:
            return found
        if place == "/parameters/layers":
            without = self.find("/model/layers_without_cache") or []
            return [layer for layer in range(self.find("/model/layers")) if layer not in without]
        return parameters_of(self.document["method"])[place.rsplit("/", 1)[1]]["default"]

    def size_of(self, name, position):
        match name:
            case "layers":
                return len(self.layers)
            case "factors":
                return len(self.layers) if self.document["files"] else 0
            case "rope_chunks":
                return self.value_of("/model/rope/rotary_dim") // 2
            case "kind_chunks":
                kinds = self.find("/model/rope/kinds")
                kind = kinds[position or 0] if kinds else self.find("/model/rope")
                return kind["rotary_dim"] // 2
            case "rope_kinds":
                return len(self.find("/model/rope/kinds") or [None])
            case "heads":
                queries = self.value_of("/calibration/ropelite/granularity") == "query-head"
                return _largest(self.value_of("/model/query_heads" if queries else "/model/kv_heads"))
        value = self.value_of(name)
        return value[position] if isinstance(value, list) and position is not None else _largest(value)

    def check(self, rule):
        if all(self.find(place) == value for place, value in rule.get("if", {}).items()):
            self.match(rule, rule["at"][1:].split("/"), self.document, "", None)

    def match(self, rule, parts, value, place, position):
        if not parts:
            self.apply(rule, value, place, position)
        elif parts[0] == "*" and isinstance(value, list):
            for index, entry in enumerate(value):
                self.match(rule, parts[1:], entry, f"{place}/{index}", index if position is None else position)
        elif isinstance(value, dict) and value.get(parts[0]) is not None:
            self.match(rule, parts[1:], value[parts[0]], f"{place}/{parts[0]}", position)

    def apply(self, rule, value, place, position):
        self.check_company(rule, value, place)
        if isinstance(value, list):
            self.check_list(rule, value, place, position)
        others = self.find(rule["outside"]) or [] if "outside" in rule else []
        for index, entry in enumerate(value if isinstance(value, list) else [value]):
            at = f"{place}/{index}" if isinstance(value, list) else place
            if entry in others:
                self.refuse(at, f"found {shown(entry)}, expected none of {rule['outside']}")
            for key, excess in (("below", 1), ("at_most", 0)):
                if key in rule and entry > (limit := self.size_of(rule[key], position) - excess):
                    self.refuse(at, f"found {shown(entry)}, expected a whole number from 0 to {limit}")

    def check_company(self, rule, value, place):
        if "needs" in rule and self.find(rule["needs"]) in (None, []):
            self.refuse(rule["needs"], f"found nothing, expected a value that goes with {place}")
        if "is" in rule and not isinstance(value, _KINDS.get(rule["is"], ())):
            self.refuse(place, f"found {shown(value)}, expected {rule['is']}")
        if "same" in rule:
            expected = self.layers if rule["same"] == "/parameters/layers" else self.value_of(rule["same"])
            by_layer = isinstance(expected, list) and not isinstance(value, list)
            if any(one != value for one in (expected if by_layer else [expected])):
                self.refuse(place, f"found {shown(value)}, expected {shown(expected)}, what {rule['same']} says")

    def check_list(self, rule, value, place, position):
        if "some" in rule and not value:
            self.refuse(place, "found an empty list, expected some entries")
        if "length" in rule and len(value) != (expected := self.size_of(rule["length"], position)):
            self.refuse(place, f"found {len(value)} entries, expected one for each of the {expected} {rule['length']}")
        if "ascending" in rule and any(a >= b for a, b in pairwise(value)):
            self.refuse(place, "found another order, expected numbers in ascending order, each once")
        if "distinct" in rule and len(set(value)) != len(value):
            self.refuse(place, "found a number twice, expected each number once")
        if "sum" in rule and sum(value) != (expected := self.size_of(rule["sum"], position)):
            self.refuse(place, f"found {value}, expected numbers that add to {expected}, what {rule['sum']} says")


def check_lists(document, where, below="/"):
    """Checks the lists below a place of a document that follows the schema."""
    rules = _Rules(document, where)
    for rule in SCHEMA["lists"]["rules"]:
        if rule["at"].startswith(below):
            rules.check(rule)
