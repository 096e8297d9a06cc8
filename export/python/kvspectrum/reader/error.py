import json


class ConfigError(ValueError):
    """One line: what is at fault, what was found, what is expected."""


def shown(value):
    """A value for a message: containers by their size."""
    if isinstance(value, (list, dict)):
        return f"{'an array' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:80] + "…"
