# SPDX-License-Identifier: Apache-2.0
"""Sequences that llama.cpp saves, `kvcalibrate slots` packs and restores, and llama.cpp continues.

As a program it measures configs: slots.py BINARIES FOLDER TEXT PREFIX CONFIG…
"""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
from llama_cpp import Llama, llama_state_seq_load_file, llama_state_seq_save_file, llama_token

from exports import BINARIES, FOLDER, check, write_wide

CONTINUED = 512
MODEL = FOLDER / "f32.gguf"  # llama.cpp's products with Q4_1 weights change as much as the codes (llama_kv_types_test)
SLOT, PACKED, RESTORED = (FOLDER / name for name in ("slot.bin", "slot.kvslot", "restored.bin"))


def last_tokens(text, prefix):
    """The last `prefix` + CONTINUED tokens of a text."""
    vocabulary = Llama(str(MODEL), vocab_only=True, verbose=False)
    return vocabulary.tokenize(text.read_bytes(), add_bos=False, special=True)[-prefix - CONTINUED:]


class Sequence:
    """A sequence of llama.cpp whose cache holds all but the last CONTINUED tokens. It is saved in SLOT."""

    def __init__(self, tokens, flash=True):
        self.tokens, self.prefix = tokens, len(tokens) - CONTINUED
        self.model = Llama(str(MODEL), n_ctx=len(tokens), n_batch=512, n_threads=2, logits_all=True, flash_attn=flash,
                           verbose=False)
        self.model.eval(tokens[:self.prefix])
        ids = (llama_token * self.prefix)(*tokens[:self.prefix])
        saved = llama_state_seq_save_file(self.model.ctx, str(SLOT).encode(), 0, ids, self.prefix)
        check("bytes that llama.cpp did not save", SLOT.stat().st_size - saved, 0)

    def continued(self):
        """Continues the sequence. Returns the logarithms of the predictions, [token, vocabulary]."""
        self.model.eval(self.tokens[self.prefix:])
        logits = np.array(self.model.scores[self.prefix:len(self.tokens)], np.float64)
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)

    def load(self, path):
        ids, count = (llama_token * self.prefix)(), ctypes.c_size_t(0)
        loaded = llama_state_seq_load_file(self.model.ctx, str(path).encode(), 0, ids, self.prefix, ctypes.byref(count))
        check(f"{path.name}: bytes that llama.cpp did not load", path.stat().st_size - loaded, 0)
        assert list(ids) == self.tokens[:self.prefix]
        self.model.n_tokens = self.prefix

    def effects(self, reference, found):
        """Mean KL divergence, perplexity relative to the reference's, share of equal first choices."""
        p, q, text = reference[:-1], found[:-1], (np.arange(CONTINUED - 1), self.tokens[self.prefix + 1:])
        return ((np.exp(p) * (p - q)).sum(axis=1).mean(), np.exp((p[text] - q[text]).mean()),
                (p.argmax(axis=1) == q.argmax(axis=1)).mean())


def restore(config):
    """Packs SLOT and restores it. Returns the share of its bytes."""
    for action, slot, out in (("pack", SLOT, PACKED), ("unpack", PACKED, RESTORED)):
        subprocess.run([BINARIES / "kvcalibrate", "slots", action, "--config", config, "--model", MODEL,
                        "--other-weights", "--slot", slot, "--out", out, "--force", "--quiet"], check=True)
    check("bytes of the restored file, difference", RESTORED.stat().st_size - SLOT.stat().st_size, 0)
    return PACKED.stat().st_size / SLOT.stat().st_size


def main():
    text, prefix, configs = Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
    write_wide(MODEL)
    sequence = Sequence(last_tokens(text, prefix))
    reference = sequence.continued()
    for config in configs:
        share = restore(config)
        sequence.load(RESTORED)
        kl, ratio, same = sequence.effects(reference, sequence.continued())
        print(f"{config}: {share:.1%} of the bytes, KL {kl:.4f}, perplexity × {ratio:.4f}, same first choice {same:.1%}")


if __name__ == "__main__":
    main()
