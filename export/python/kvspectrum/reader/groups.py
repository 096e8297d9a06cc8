# SPDX-License-Identifier: Apache-2.0
"""Layers of a transform config that share rows."""

from kvspectrum.reader.error import ConfigError, shown
from kvspectrum.reader.sizes import size_of


def groups_of(parameters):
    """The lists of layers that share rows, in order."""
    layers, groups, first = parameters["layers"], [], 0
    for count in parameters.get("groups", [1] * len(layers)):
        groups.append(layers[first:first + count])
        first += count
    return groups


def check_groups(document, where):
    """@raises ConfigError unless the layers of a group can share rows, and rows can be predicted and coded so"""
    model, parameters = document["model"], document["parameters"]

    def refuse(name, problem):
        raise ConfigError(f"{where}: /parameters/{name}: found {shown(parameters[name])}, expected {problem}")

    def only_by_layer(name, thing):
        if parameters["rows"] == "head":
            refuse(name, f"no {thing} with rows by head")
        if parameters["recent"] == 0:
            refuse(name, f"no {thing} without recent tokens")

    if "groups" in parameters:
        if sum(parameters["groups"]) != len(parameters["layers"]):
            refuse("groups", f"groups of {len(parameters['layers'])} layers")
        for layers in groups_of(parameters):
            if len({(size_of(model, "kv_heads", layer), size_of(model, "head_dim", layer)) for layer in layers}) > 1:
                refuse("groups", "layers with equal heads")
        if max(parameters["groups"]) > 1:
            only_by_layer("groups", "groups")
    if "predict" in parameters:
        if parameters["layers"][0] != 0:
            refuse("predict", "no prediction without layer 0")
        only_by_layer("predict", "prediction")
    if "form" in parameters:
        only_by_layer("form", "storage form")
        if parameters["outliers"] > 0:
            refuse("form", "no storage form with outliers")
