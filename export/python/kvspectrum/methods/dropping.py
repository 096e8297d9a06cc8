from kvspectrum.slots import SlotLayer


class DroppingLayer(SlotLayer):
    """Of the slots after the sinks, a compression keeps the last ⌊gamma · N⌋: the baseline of FreqKV."""

    no_press = "no press acts each time that a cache is full"

    def compress(self):
        self.drop_rows(self.sinks, self.cache_size - self.kept)
