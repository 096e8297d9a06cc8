# SPDX-License-Identifier: Apache-2.0
import json


class ConfigError(ValueError):
    """One line: the faulty member, the value found and the value expected."""


def shown(value):
    """A value for a message: containers by their size."""
    if isinstance(value, (list, dict)):
        return f"{'an array' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:80] + "…"
