#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of power spectra, by PyTorch, Transformers and SciPy, from a file of reference values.

Usage: make_spectrum.py REFERENCE.h5 OUT_DIR

REFERENCE.h5 holds SmolLM2-135M-Instruct (Q4_1 GGUF, widened to f32, run by Transformers in f32) on the first 512 tokens
of Newton's Opticks: `states/v/14` [heads, tokens, head_dim] and `power/KIND` f32 [layers, kv heads, bins], the squared
scipy.fft.dct(states as float64, norm="ortho") over tokens, mean over channels.

Writes spectrum_v_layer14_head1.f32 (raw little-endian states of one head) and spectrum_opticks512.json: that head's
whole spectrum, and every kind's power at every 31st bin of every layer and head.
"""
import json
import sys

import h5py

STRIDE = 31


def main():
    reference, out = sys.argv[1:]
    golden = {"stride": STRIDE}
    with h5py.File(reference) as h:
        h["states/v/14"][1].astype("<f4").tofile(f"{out}/spectrum_v_layer14_head1.f32")
        golden["v_layer14_head1"] = [float(f"{x:.9g}") for x in h["power/v"][14, 1]]
        for kind in ("k_pre", "k_post", "v"):
            golden[kind] = [[[float(f"{x:.9g}") for x in row] for row in layer] for layer in h[f"power/{kind}"][:, :, ::STRIDE]]
    with open(f"{out}/spectrum_opticks512.json", "w") as f:
        f.write(json.dumps(golden).replace("]],", "]],\n") + "\n")


if __name__ == "__main__":
    main()
