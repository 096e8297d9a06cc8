# SPDX-License-Identifier: Apache-2.0
"""Configs as presses of kvpress, for the methods that it has."""

from kvspectrum.config import Config, ConfigError
from kvspectrum.layer import CalibratedLayer
from kvspectrum.methods import METHODS


def _snapkv(parameters, tokens):
    settings = {"window_size": parameters.count("window", 1), "kernel_size": parameters.count("kernel", 1)}
    return settings, parameters.count("cache_size", 1)


def _l2norm(parameters, tokens):
    return {}, int(parameters.ratio("ratio") * tokens)


def _lagkv(parameters, tokens):
    parameters.word("variant", "lag")
    if parameters.weight("value_weight") != 1:
        parameters.refuse("value_weight", "found another weight, expected 1, the press's")
    sinks, lag = parameters.count("sinks"), parameters.count("lag", 1)
    partitions = max(0, (tokens - sinks) // lag - 1)  # the last one stays
    return {"n_sink": sinks, "lag_size": lag}, tokens - partitions * (lag - int(parameters.ratio("ratio") * lag))


def _streaming(parameters, tokens):
    return {"n_sink": parameters.count("sinks")}, parameters.count("cache_size", 1) - 1  # and the next token


# From a method's parameters and a prompt's tokens: the press, its own settings and the tokens that it leaves.
PRESSES = {
    "snapkv": ("SnapKVPress", _snapkv),
    "l2norm": ("KnormPress", _l2norm),
    "lagkv": ("LagKVPress", _lagkv),
    "streaming": ("StreamingLLMPress", _streaming),
}


def press_from_config(path, tokens=None):
    """kvpress's press with the settings of the config at `path`, for prompts of `tokens` tokens (the config's prefix):
    a press takes a share of them, a ratio. Where layers differ, a PerLayerCompressionPress.

    A press compresses a prompt once, at its end, and nothing later: what `prefill=whole` means here. Of `streaming` it
    is the state at the prompt's end, with keys turned to their slots (KeyRerotationPress).
    @raises ConfigError where kvpress has no such press, or none for these settings"""
    config = Config(path)
    if config.method not in PRESSES:
        raise ConfigError(f"{path}: found method {config.method}, expected one of {', '.join(PRESSES)}: "
                          f"{METHODS.get(config.method, CalibratedLayer).no_press}")
    config.check_types()
    import kvpress

    name, settings_of = PRESSES[config.method]
    tokens = config.prefix(always=True) if tokens is None else tokens
    settings, ratios = None, []
    for layer in range(config.model["layers"]):
        parameters = config.parameters(layer)
        if parameters is None or METHODS[config.method].keeps_all(parameters, layer):
            ratios.append(0.0)
            continue
        found, kept = settings_of(parameters, tokens)
        if settings not in (None, found):
            raise ConfigError(f"{path}: found layers with {settings} and {found}, expected the same: a press has them "
                              "once")
        settings = found
        ratios.append(max(0.0, 1 - (kept + 0.5) / tokens))  # kvpress keeps ⌊tokens · (1 − ratio)⌋
    press = getattr(kvpress, name)(compression_ratio=ratios[0], **settings or {})
    same = len(set(ratios)) == 1
    if config.method == "streaming":
        if not same:
            raise ConfigError(f"{path}: found layers that differ, expected the same: KeyRerotationPress has one ratio")
        return kvpress.KeyRerotationPress(press)
    return press if same else kvpress.PerLayerCompressionPress(press, ratios)
