import torch

from kvspectrum.layer import CalibratedLayer, attention


class StreamingLayer(CalibratedLayer):
    """A token attends to the first `sinks` tokens and to the last cache_size − sinks ones, itself included, as if they
    stood in slots 0 to cache_size − 1. Keys are held before RoPE and rotated at their slots for each token. With a
    storage type the keys after the sinks are coded after RoPE, at positions counted from `origin`, and once in
    cache_size tokens again, so that positions stay below 2 · cache_size.
    Source: Xiao et al. (2024), StreamingLLM, arXiv:2309.17453, section 3.2."""

    def __init__(self, parameters, setting):
        self.sinks = parameters.count("sinks")
        self.cache_size = parameters.count("cache_size", self.sinks + (1 if self.sinks else 2))
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.origin = 0

    def room(self):
        return max(1, self.cache_size - self.rows)

    def attend(self, states):
        if self.k_rows.coded and self.seen - self.origin + 1 == 2 * self.cache_size:
            self.move_origin()
        position = self.seen - self.origin if self.k_rows.coded else self.rows
        q = self.rotation(states.q, position)
        if self.k_rows.coded:
            keys, values = self.add(self.turned(states.k, self.sinks - self.seen, position), states.v)
            sinks = self.rotation(keys[..., :self.sinks, :], position - min(self.seen, self.cache_size - 1))
            keys = torch.cat([sinks, keys[..., self.sinks:, :]], -2)
        else:
            keys, values = self.add(states.k, states.v)
            keys = self.rotation(keys, 0)
        out = attention(q, keys, values, states.scale)
        if self.rows == self.cache_size:  # the next token takes the place of the oldest one after the sinks
            self.drop_rows(self.sinks, self.sinks + 1)
        return out

    def turned(self, k, sinks, position):
        """Keys of which the first ones are sinks, which stay before RoPE."""
        return torch.cat([k[..., :max(0, sinks), :], self.rotation(k, position)[..., max(0, sinks):, :]], -2)

    def move_origin(self):
        keys, _ = self.held(slice(self.sinks, None))
        again = self.k_rows.encode(self.rotation.back(keys, self.cache_size))
        self.keys = torch.cat([self.keys[..., :self.sinks, :], again], -2)
        self.origin += self.cache_size
