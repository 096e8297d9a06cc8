# SPDX-License-Identifier: Apache-2.0
"""A layer's caches of all sequences of a batch, as Transformers asks for them."""

import torch
from transformers.cache_utils import CacheLayerMixin


class Padding:
    """Where a model's masks leave out tokens. The layers of a pass have the same masks."""

    def __init__(self):
        self._mask = self._window = self._there = None

    def of(self, mask, window):
        """@param mask  [sequence, 1, token, token] of the new tokens, or None
        @return [sequence, token], whether a token is there; None: all are
        @raises ValueError for a mask that is not that of causal attention, of a window, and of padding"""
        if mask is None:
            return None
        if mask is not self._mask or window != self._window:
            self._mask, self._window, self._there = mask, window, _there(mask, window)
        return self._there


def _there(mask, window):
    tokens = mask.shape[-1]
    if mask.dtype == torch.bool and mask.shape[-2] == tokens:
        there = mask[:, 0].diagonal(dim1=-2, dim2=-1)
        expected = torch.ones(tokens, tokens, dtype=torch.bool, device=mask.device).tril()
        if window:
            expected = expected.triu(1 - window)
        if (mask[:, 0] == (expected & there[:, None]))[there].all():
            return None if there.all() else there
    raise ValueError("CalibratedCache: found a mask that is not that of causal attention with padding, expected none "
                     "or an attention_mask [sequence, token]")


class Sequences(CacheLayerMixin):
    """The cache of one layer: a CalibratedLayer for each sequence, which counts its tokens without padding.
    @param make  makes one
    @param padding  of the model's layers"""

    def __init__(self, make, padding):
        super().__init__()
        self.make, self.padding = make, padding
        self.window = make().reach  # of the layer
        self.reset()

    def reset(self):
        self.sequences = []
        self.seen = 0  # tokens, with padding
        self.awaits = False  # whether the hook announced update()'s states

    def run(self, states, mask):
        """Attention of the new tokens. Padding gets zeros."""
        there, batch = self.padding.of(mask, self.window), states.q.shape[0]
        if not self.sequences:
            self.sequences = [self.make() for _ in range(batch)]
        if batch != len(self.sequences):
            raise ValueError(f"CalibratedCache: found a batch of {batch}, expected {len(self.sequences)} sequences: "
                             "those that the cache holds")
        self.seen += states.q.shape[-2]
        if there is None:
            out = [sequence.run(states.sequence(n)) for n, sequence in enumerate(self.sequences)]
            return out[0] if batch == 1 else torch.cat(out)
        out = torch.zeros_like(states.q)
        for n, sequence in enumerate(self.sequences):
            places = there[n].nonzero()[:, 0]
            if len(places):
                out[n, :, places] = sequence.run(states.sequence(n, places))[0]
        return out

    # What Transformers asks of a layer. The mask has new tokens alone in it: a method knows what they see.
    def lazy_initialization(self, key_states, value_states):
        pass

    def update(self, key_states, value_states, *args, **kwargs):
        if not self.awaits:
            raise ValueError("CalibratedCache: found a model that from_config was not called with, expected that one")
        self.awaits = False
        return key_states, value_states  # the attention function brings them to run()

    def get_mask_sizes(self, query):
        """@param query  tokens; in the first versions of Transformers 5 their positions"""
        return query if isinstance(query, int) else len(query), self.seen

    def get_seq_length(self):
        return self.seen

    def get_max_length(self):
        return -1

    get_max_cache_shape = get_max_length  # its name in the first versions of Transformers 5

    def reorder_cache(self, beam_idx):
        self.take(beam_idx.tolist())

    def batch_repeat_interleave(self, repeats):
        self.take([n for n in range(len(self.sequences)) for _ in range(repeats)])

    def batch_select_indices(self, indices):
        self.take(torch.arange(len(self.sequences))[indices.cpu()].tolist())

    def take(self, chosen):
        if self.sequences:
            self.sequences = [self.sequences[n].copy() for n in chosen]

    def crop(self, tokens_to_remove):
        raise ValueError("CalibratedCache: found a call of crop (assisted decoding, prompt lookup), expected none: "
                         "what a method let go does not come back")
