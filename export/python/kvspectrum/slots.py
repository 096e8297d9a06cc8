# SPDX-License-Identifier: Apache-2.0
"""Slots, which freqkv and dropping share."""

from kvspectrum.layer import CalibratedLayer, attention


class SlotLayer(CalibratedLayer):
    """At most `cache_size` slots, of which the first `sinks` stay. Just before a token that finds the cache full, the
    N = cache_size − sinks others become ⌊gamma · N⌋. rope=pre: keys are held before RoPE and rotated at their slot,
    queries at theirs; rope=post: both at their positions in the text."""

    def __init__(self, parameters, setting):
        self.sinks = parameters.count("sinks")
        self.cache_size = parameters.count("cache_size", self.sinks + 2)
        compressible = self.cache_size - self.sinks
        self.kept = int(parameters.ratio("gamma") * compressible)
        if self.kept in (0, compressible):
            parameters.refuse("gamma", f"found one that keeps {self.kept} of {compressible} slots, expected one that "
                                       "keeps some and frees some")
        self.slots = parameters.word("rope", "pre", "post") == "pre"
        super().__init__(parameters, setting)

    def room(self):
        full = self.rows == self.cache_size
        return self.cache_size - (self.sinks + self.kept if full else self.rows)

    def compress(self):
        """Replaces the rows after the sinks by `kept` ones."""
        raise NotImplementedError

    def attend(self, states):
        if self.rows == self.cache_size:
            self.compress()
        if not self.slots:
            return super().attend(states)
        q = self.rotation(states.q, self.rows)
        keys, values = self.add(states.k, states.v)
        return attention(q, self.rotation(keys, 0), values, states.scale)
