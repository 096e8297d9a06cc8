#!/usr/bin/env python3
"""Writes the seeds of the target checkpoint into the folder beside this script: a module of each golden checkpoint."""
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent.parent / "golden" / "checkpoints"
MODULES = (".k_proj.", ".up_proj.")

(HERE / "checkpoint").mkdir(exist_ok=True)
for folder in sorted(GOLDEN.iterdir()):
    config = json.loads((folder / "config.json").read_text()).get("quantization_config")
    if config is None:
        config = json.loads((folder / "hf_quant_config.json").read_text()) | {"quant_method": "modelopt"}
    file = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", file[:8])[0]
    header, data = json.loads(file[8:8 + length]), b""
    kept = {}
    for name, entry in header.items():
        if any(module in name for module in MODULES[:1 if folder.name != "modelopt_mixed" else 2]):
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            kept[name] = entry | {"data_offsets": [len(data), len(data) + end - begin]}
            data += file[begin:end]
    seed = json.dumps(config).encode() + b"\0" + json.dumps(kept).encode() + b"\0" + data
    (HERE / "checkpoint" / folder.name).write_bytes(seed)
