# SPDX-License-Identifier: Apache-2.0
"""Names that a newer build spells differently, and intended differences. Every row is (command, old, new); command
None stands for all. A build that is older than a row takes its old spelling: `--help` of the command tells which it has.
"""

# Options of a command: ("compare", "--losses", "--max-ppl-increase").
OPTIONS = [("eval", "--against", "--reference"), (None, "--held-windows", "--holdout-windows"),
           (None, "--held-out", "--holdout-documents"), (None, "--by-layer", "--per-layer-rounds"),
           ("compare", "--full", "--no-early-stop"), ("compare", "--losses", "--max-ppl-increase"),
           ("compare", "--compose", "--types-with-methods"), ("compare", "--stores", "--types"),
           ("transform", "--costs", "--reuse-sensitivities"), ("capture", "--store", "--state-dtype"),
           ("capture", "--split", "--parts"), ("elitekv", "--split", "--singular-values"),
           ("elitekv", "--ratio", "--cache-ratio"), ("compare", "--decode", "--timed-tokens"),
           ("perturb", "--tokens", "--compared-tokens"), ("cost", "--tokens", "--lengths"),
           ("generate", "--tokens", "--max-new-tokens"), ("retain", "--keep", "--kept-shares"),
           ("scores", "--document", "--window-index"), ("export", "--dtype", "--matrix-dtype"),
           ("store", "--fp8-scale", "--scale")]

# Parameters of --set, --cache and configs: (None, "store", "type"). They are keys of outputs, too.
PARAMETERS = [(None, "store", "type"), (None, "store_k", "type_k"), (None, "store_v", "type_v"),
              (None, "store_skip_layers", "type_skip_layers")]

# Keys of JSON objects, and names in HDF5 files: ("compare", "cells", "configurations").
KEYS = [("compare", "cells", "configurations"), ("compare", "cell", "configuration"),
        ("compare", "front", "pareto_front")]
KEYS += [(command, "store", "state-dtype") for command in ("capture", "merge")]  # an option in the identity

# Values that differ on purpose: (step of commands.py, JSON pointer or its beginning, reason).
CHANGES = [(step, "/methods", "every method, by its name and title")
           for step in ("info", "info_window", "real_info")]
CHANGES += [(step, "/identity/model_config", "sizes are listed by layer")
            for step in ("capture", "capture_bf16", "capture_split", "merge")]

# Times, and members that depend on them.
TIMES = {"seconds", "tokens_per_second", "prefill_tokens_per_second", "decode_tokens_per_second", "compression_share",
         "prefill_ms", "decode_ms", "prefill_ratio", "decode_ratio"}

# The program's version, the words of the command line, and digests of files that hold those.
ORIGINS = {"tool_version", "command", "config_sha256", "costs_sha256", "metadata_sha256"}

# Sentences for people: the comparison checks that they exist, not their words.
PROSE = {"verdict", "words", "error", "note", "notes", "left_out", "what"}
