# SPDX-License-Identifier: Apache-2.0
from kvspectrum.slots import SlotLayer


class DroppingLayer(SlotLayer):
    """A compression keeps the sinks and the last ⌊gamma · N⌋ of the slots after them: the baseline of FreqKV."""

    no_press = "no press acts each time that a cache is full"

    def compress(self):
        self.drop_rows(self.sinks, self.cache_size - self.kept)
