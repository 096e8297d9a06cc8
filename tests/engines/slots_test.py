# SPDX-License-Identifier: Apache-2.0
"""`kvcalibrate slots` with unmodified llama.cpp: a sequence is saved, packed, restored and continued.

The restored cache must give the predictions of the saved one, but for what the codes change. `eval` measures this for
the same config and the same tokens; there the continued tokens are coded, too.
"""

import json
import subprocess

from exports import BINARIES, FOLDER, TEXT, check, run, write_wide
from slots import CONTINUED, MODEL, RESTORED, SLOT, Sequence, last_tokens, restore

PREFIX, CONFIG = 1536, FOLDER / "slots.json"


def evaluated(tokens):
    """The KL divergence of `eval` on the tokens after the prefix."""
    file = FOLDER / "slots.jsonl"
    file.write_text(json.dumps(tokens) + "\n")
    out = subprocess.run([BINARIES / "kvcalibrate", "eval", "--model", MODEL, "--tokens-file", file, "--window",
                          str(len(tokens)), "--stride", str(CONTINUED), "--config", CONFIG, "--quiet", "--json"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["kl"]


write_wide(MODEL)
run("kvcalibrate", "transform", "--model", MODEL, "--text", TEXT, "--window", 256, "--windows", "0:8", "--length",
    PREFIX + CONTINUED, "--budget", "12%", "--layers-per-group", 2, "--predict", "embedding", "--form", "storage",
    "--out", CONFIG, "--force", "--quiet")
tokens = last_tokens(TEXT, PREFIX)
measured = evaluated(tokens)
for flash in (True, False):  # without flash attention llama.cpp stores values channel by channel
    sequence = Sequence(tokens, flash)
    reference = sequence.continued()
    sequence.load(SLOT)
    check("KL of a file that was not packed", sequence.effects(reference, sequence.continued())[0], 1e-6)
    share = restore(CONFIG)
    sequence.load(RESTORED)
    found = sequence.effects(reference, sequence.continued())[0]
    print(f"flash attention {'on' if flash else 'off'}: {share:.1%} of the bytes, KL {found:.4f}, eval {measured:.4f}")
    check("KL of the restored cache, of eval's", found / measured, 1.2)
    del sequence
