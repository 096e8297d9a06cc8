# SPDX-License-Identifier: Apache-2.0
"""Sizes of a model's layers."""


def size_of(model, name, layer):
    """A size of a layer: the model's only one, or the layer's own."""
    value = model[name]
    return value[layer] if isinstance(value, list) else value
