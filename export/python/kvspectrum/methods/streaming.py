from kvspectrum.layer import CalibratedLayer, attention


class StreamingLayer(CalibratedLayer):
    """A token attends to the first `sinks` tokens and to the last cache_size − sinks ones, itself included, as if they
    stood in slots 0 to cache_size − 1. Keys are held before RoPE and rotated at their slots for each token.
    Source: Xiao et al. (2024), StreamingLLM, arXiv:2309.17453, section 3.2."""

    def __init__(self, parameters, setting):
        self.sinks = parameters.count("sinks")
        self.cache_size = parameters.count("cache_size", self.sinks + (1 if self.sinks else 2))
        super().__init__(parameters, setting)

    def room(self):
        return max(1, self.cache_size - self.rows)

    def attend(self, states):
        q = self.rotation(states.q, self.rows)
        keys, values = self.add(states.k, states.v)
        out = attention(q, self.rotation(keys, 0), values, states.scale)
        if self.rows == self.cache_size:  # the next token takes the place of the oldest one after the sinks
            self.drop_rows(self.sinks, self.sinks + 1)
        return out
