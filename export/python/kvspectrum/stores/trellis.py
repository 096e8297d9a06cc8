# SPDX-License-Identifier: Apache-2.0
"""Trellis-coded values (src/kernels/codecs/trellis.h): value i adds bits[i] bits to a stream, whose last eight bits are
the state; the state selects an entry of the book for that number of bits. A row is its gain (f16), whose high byte is
the first state, and the stream."""

from typing import Any

import torch

from kvspectrum.stores.bits import as_bytes, half_columns, over

STATES, FAR = 256, 1e30


class Trellis:
    """@param books  [bits 0 … 8, state];  @param bits, weights  [value];  @param offsets, scales  [value]: the coded
    values are (x − offset) / scale; absent: 0 and 1"""

    def __init__(self, books, bits, weights, offsets=None, scales=None):
        self.books, self.weights = books, weights
        self.offsets = torch.zeros_like(weights) if offsets is None else offsets
        self.scales = torch.ones_like(weights) if scales is None else scales
        self.counts = [int(count) for count in bits]
        self.bits = bits.long()
        ends = self.bits.cumsum(0)
        self.bytes = 2 + (int(ends[-1]) + 7) // 8
        self.first, self.shift = (15 + ends) // 8, 7 - (15 + ends) % 8  # of each value's state: its last byte, its end
        self.value_of_bit = torch.repeat_interleave(torch.arange(len(bits)), self.bits)
        self.place_of_bit = ends[self.value_of_bit] - 1 - torch.arange(int(ends[-1]))

    def to(self, device):
        if self.books.device != device:
            for name, tensor in vars(self).items():
                if isinstance(tensor, torch.Tensor):
                    setattr(self, name, tensor.to(device))
        return self

    def decode(self, rows):
        """rows uint8 [row, byte]; returns f32 [row, value]"""
        self.to(rows.device)
        (gain,) = half_columns(rows, 1)
        words = rows[:, self.first - 1].int() << 8 | rows[:, self.first].int()
        states = words >> self.shift & 255
        return self.offsets + gain * self.scales * self.books[self.bits, states.long()]

    def gain(self, z):
        """The root mean square of the coded values, in f16 as bytes; sums in the programs' order."""
        total, coded = torch.zeros_like(z[:, 0]), sum(count > 0 for count in self.counts)
        for i, count in enumerate(self.counts):
            if count:
                total = total + z[:, i] * z[:, i]
        gain = over(total, coded).sqrt().clamp(0.05, 60000) if coded else torch.ones_like(total)
        return as_bytes(gain[:, None].half())

    def encode(self, x):
        """The stream of least cost, by dynamic programming over the states, for all rows at once.
        x f32 [row, value]; returns uint8 [row, byte]"""
        self.to(x.device)
        z = (x - self.offsets) / self.scales
        head = self.gain(z)
        z = z * (1 / half_columns(head, 1)[0])
        states = self.best_states(z, head[:, 1:])
        stream = states[:, self.value_of_bit] >> self.place_of_bit & 1
        stream = torch.nn.functional.pad(stream, (0, -stream.shape[1] % 8)).unflatten(1, (-1, 8))
        packed = (stream << torch.arange(7, -1, -1, device=x.device)).sum(-1)
        return torch.cat([head, packed.to(torch.uint8)], 1)

    def best_states(self, z, start):
        """@param start  [row, 1]: the state before the first value;  @return [row, value], 0 where there are no bits"""
        rows = len(z)
        numbers = torch.arange(STATES, device=z.device)
        cost = torch.where(numbers == start, 0.0, FAR)
        back: list[Any] = []  # tensors, None where there are no bits
        for i, count in enumerate(self.counts):
            if not count:
                back.append(None)
                continue
            before = cost.view(rows, 1 << count, -1)  # states that share the bits which stay
            which = before.argmin(1, keepdim=True)
            least = before.gather(1, which)[:, 0]
            back.append((which[:, 0] * least.shape[1] + numbers[:least.shape[1]]).to(torch.uint8))
            error = z[:, i:i + 1] - self.books[count]
            cost = self.weights[i] * (error * error) + least.repeat_interleave(1 << count, 1)
        state = cost.argmin(1, keepdim=True)
        states = torch.zeros(rows, len(self.counts), dtype=torch.long, device=z.device)
        for i in range(len(self.counts) - 1, -1, -1):
            if self.counts[i]:
                states[:, i:i + 1] = state
                state = back[i].gather(1, state >> self.counts[i]).long()
        return states
