# SPDX-License-Identifier: Apache-2.0
"""The config of SmolLM2 that the tests of this folder export."""

from exports import MODEL, SMOLLM2_CONFIG, TEXT, calibrate

calibrate(MODEL, SMOLLM2_CONFIG, "--text", TEXT, "--window", 512, "--documents", 8, "--elite", 10, "--rank", 192,
          "--outputs", "fitted")
