#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny Llamas in the quantised checkpoint formats, compared with the formats' own decoders and with Transformers.

Usage: checkpoints.py PATH/TO/model_nll [--seeds 3]
       checkpoints.py --golden FOLDER       (rewrites tests/golden/checkpoints)

The codes, scales and zero points are random. Each module is packed here and decoded by `compressed_tensors`,
`bitsandbytes` or the formula of AutoGPTQ, AutoAWQ (its unpacking in compressed_tensors) or ModelOpt, with products in
f32. The decoded values must have our bits; the NLL of every token in f32 must agree with Transformers' to 1e-4 nats.
Exits with 1 if a value differs, and with 77 (skipped) without the packages. Checked with compressed-tensors 0.20.0,
bitsandbytes 0.50.2, transformers 5.24.0 and torch 2.15.0.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
    from bitsandbytes.functional import QuantState, create_dynamic_map, dequantize_blockwise, get_4bit_type, int8_vectorwise_dequant
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
    from compressed_tensors.entrypoints.convert.converters.autoawq import AutoAWQConverter
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    from safetensors.torch import save_file
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TOKENS = [7, 1, 33, 12, 12, 40, 3, 45, 0, 28, 19, 6]
VOCABULARY, WIDTH, INNER, HEADS = 48, 32, 64, 2
MODULES = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
           "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}


def packed_rows(codes, bits):
    """Codes [row, column] as I32 words of each row: one stream of bits, the lowest first."""
    rows, columns = codes.shape
    words = -(-columns * bits // 32)
    stream = numpy.zeros((rows, words * 32), dtype=numpy.uint8)
    for bit in range(bits):
        stream[:, bit:columns * bits:bits] = codes >> bit & 1
    return torch.from_numpy(numpy.packbits(stream, axis=1, bitorder="little").view("<i4").copy())


def nibbles(codes):
    """E2M1 codes [row, column] as bytes, the even column in the low half."""
    return torch.from_numpy((codes[:, 0::2] | codes[:, 1::2] << 4).astype(numpy.uint8))


class Draw:
    """Random codes and scales of one model. The scales are such that values are about 0.1."""

    def __init__(self, seed):
        self.rng = numpy.random.default_rng(seed)

    def codes(self, shape, bits):
        return self.rng.integers(0, 1 << bits, shape)

    def scales(self, shape, kind=torch.float32, size=0.02):
        return torch.from_numpy(numpy.asarray(self.rng.uniform(0.2, 1.0, shape) * size)).to(kind)

    def e4m3(self, shape):
        codes = self.rng.integers(0, 96, shape) | self.rng.integers(0, 2, shape) << 7  # |x| at most 30
        return torch.from_numpy(codes.astype(numpy.uint8)).view(torch.float8_e4m3fn)


# --- formats: each returns (tensors by their ending, decoded values) of one module [rows, columns] ---


def compressed(args, format_name, scale_kind=torch.bfloat16):
    """compressed-tensors. @param args  of config_groups' weights"""
    quantization = QuantizationArgs(**args)

    def module(draw, rows, columns):
        bits, strategy = args["num_bits"], args["strategy"]
        groups = {"tensor": (1,), "channel": (rows, 1), "block": None}.get(strategy, (rows, columns // args.get("group_size", 1)))
        if strategy == "block":
            groups = tuple(-(-extent // block) for extent, block in zip((rows, columns), args["block_structure"]))
        integers = args["type"] == "int"
        scale = draw.scales(groups, scale_kind, 0.15 / 2 ** (bits - 1) if integers else 0.02)
        tensors, zero, divisor = {}, None, None
        if format_name in ("nvfp4-pack-quantized", "mxfp4-pack-quantized"):
            tensors["weight_packed"] = nibbles(draw.codes((rows, columns), 4))
            values = unpack_fp4_from_uint8(tensors["weight_packed"], rows, columns, torch.float32)
            if format_name.startswith("nv"):
                scale, divisor = draw.e4m3(groups), draw.scales((1,), torch.float32, 300.0)
                tensors["weight_global_scale"] = divisor
            else:
                scale = torch.from_numpy(draw.rng.integers(118, 125, groups).astype(numpy.uint8))
        elif format_name == "pack-quantized":
            codes = draw.codes((rows, columns), bits)
            tensors["weight_packed"] = packed_rows(codes, bits)
            tensors["weight_shape"] = torch.tensor([rows, columns])
            values = unpack_from_int32(tensors["weight_packed"], bits, torch.Size((rows, columns)))
            assert (values.numpy() == codes - 2 ** (bits - 1)).all()
        elif integers:
            values = tensors["weight"] = torch.from_numpy((draw.codes((rows, columns), bits) - 2 ** (bits - 1)).astype(numpy.int8))
        else:
            values = tensors["weight"] = draw.e4m3((rows, columns))
        if format_name == "mxfp8-quantized":
            scale = torch.from_numpy(draw.rng.integers(110, 120, groups).astype(numpy.uint8))
        if not args.get("symmetric", True):
            codes = draw.codes(tuple(scale.shape), bits)
            zero = torch.from_numpy((codes - 2 ** (bits - 1)).astype(numpy.int8))
            tensors["weight_zero_point"] = zero
            if format_name == "pack-quantized":
                tensors["weight_zero_point"] = packed_rows(codes.T, bits).T.contiguous()
        tensors["weight_scale"] = scale
        plain = (scale.to(torch.float32) - 127).exp2() if scale.dtype == torch.uint8 else scale.to(torch.float32)
        decoded = dequantize(values.to(torch.float32), plain, zero, quantization, torch.float32, divisor)
        return tensors, decoded

    return module


def reordered(bits, group):
    """pack-quantized with weight_g_idx, which old versions of compressed-tensors wrote (actorder group)."""

    def module(draw, rows, columns):
        codes = draw.codes((rows, columns), bits)
        scale = draw.scales((rows, columns // group), torch.float16, 0.15 / 2 ** (bits - 1))
        order = torch.from_numpy(draw.rng.permutation(columns) // group).to(torch.int32)
        tensors = {"weight_packed": packed_rows(codes, bits), "weight_shape": torch.tensor([rows, columns]), "weight_scale": scale,
                   "weight_g_idx": order}
        values = torch.from_numpy(codes - 2 ** (bits - 1)).to(torch.float32)
        return tensors, values * scale.to(torch.float32)[:, order.long()]

    return module


def modelopt_fp8(shape):
    def module(draw, rows, columns):
        weight, scale = draw.e4m3((rows, columns)), draw.scales((rows,) if shape == "channel" else ())
        return {"weight": weight, "weight_scale": scale, "input_scale": torch.ones(())}, \
            weight.to(torch.float32) * (scale[:, None] if shape == "channel" else scale)

    return module


def modelopt_nvfp4(draw, rows, columns):
    """As NVFP4QTensor.dequantize of ModelOpt."""
    weight, scale, double = nibbles(draw.codes((rows, columns), 4)), draw.e4m3((rows, columns // 16)), draw.scales((), size=0.01)
    values = unpack_fp4_from_uint8(weight, rows, columns, torch.float32).view(rows, -1, 16)
    decoded = (values * (scale.to(torch.float32) * double).unsqueeze(-1)).reshape(rows, columns)
    return {"weight": weight, "weight_scale": scale, "weight_scale_2": double, "input_scale": torch.ones(())}, decoded


def awq(group):
    def module(draw, rows, columns):
        group_size = columns if group < 0 else group
        order = [0, 2, 4, 6, 1, 3, 5, 7]  # AutoAWQ packs output order[i] of eight into nibble i
        words = lambda codes: packed_rows(codes.reshape(len(codes), -1, 8)[:, :, order].reshape(len(codes), -1), 4)  # noqa: E731
        qweight, qzeros = words(draw.codes((columns, rows), 4)), words(draw.codes((columns // group_size, rows), 4))
        scales = draw.scales((columns // group_size, rows), torch.float16)
        values, zeros = AutoAWQConverter.reverse_awq_order(*AutoAWQConverter.unpack_awq(qweight, qzeros, 4), 4)
        codes, zeros = (values & 15).to(torch.float32), (zeros & 15).to(torch.float32)
        decoded = (codes - zeros.repeat_interleave(group_size, 0)) * scales.to(torch.float32).repeat_interleave(group_size, 0)
        return {"qweight": qweight, "qzeros": qzeros, "scales": scales}, decoded.T.contiguous()

    return module


def gptq_unpacked(words, bits):
    """Codes of I32 words down the first axis, as in AutoGPTQ's torch code."""
    if bits == 3:
        first, second, third = (words[n::3].unsqueeze(1) for n in range(3))
        shift = torch.arange(0, 30, 3, dtype=torch.int32).view(1, -1, 1)
        codes = torch.cat([first >> shift & 7, first >> 30 & 3 | (second & 1) << 2, second >> 1 >> shift & 7,
                           second >> 31 & 1 | (third & 3) << 1, third >> 2 >> shift & 7], 1)
        return codes.reshape(-1, words.shape[1])
    shift = torch.arange(0, 32, bits, dtype=torch.int32).view(1, -1, 1)
    return (words.unsqueeze(1) >> shift & 2 ** bits - 1).reshape(-1, words.shape[1])


def gptq(bits, group, act_order=False, second=False):
    def module(draw, rows, columns):
        group_size = columns if group < 0 else group
        groups = columns // group_size
        qweight = packed_rows(draw.codes((rows, columns), bits), bits).T.contiguous()
        qzeros = packed_rows(draw.codes((groups, rows), bits), bits)
        scales = draw.scales((groups, rows), torch.float16, 0.15 / 2 ** (bits - 1))
        order = torch.arange(columns, dtype=torch.int32) // group_size
        if act_order:
            order = order[torch.from_numpy(draw.rng.permutation(columns))]
        zeros = gptq_unpacked(qzeros.T, bits).T + (0 if second else 1)
        codes = gptq_unpacked(qweight, bits)
        decoded = (codes - zeros[order.long()]).to(torch.float32) * scales.to(torch.float32)[order.long()]
        return {"qweight": qweight, "qzeros": qzeros, "scales": scales, "g_idx": order}, decoded.T.contiguous()

    return module


def bnb4(kind, nested):
    def module(draw, rows, columns):
        blocks = rows * columns // 64
        code = torch.from_numpy(draw.codes((rows * columns // 2, 1), 8).astype(numpy.uint8))
        table = get_4bit_type(kind, device="cpu")
        state = {"quant_type": kind, "blocksize": 64, "dtype": "float32", "shape": [rows, columns]}
        tensors = {"weight": code, "weight.quant_map": table}
        if nested:
            stored = torch.from_numpy(draw.codes((blocks,), 8).astype(numpy.uint8))
            factors, dynamic = draw.scales((-(-blocks // 256),), size=0.1), create_dynamic_map()
            inner = QuantState(absmax=factors, code=dynamic, blocksize=256, dtype=torch.float32)
            absmax = dequantize_blockwise(stored, inner) + 0.13
            state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.13}
            tensors |= {"weight.absmax": stored, "weight.nested_absmax": factors, "weight.nested_quant_map": dynamic}
        else:
            absmax = tensors["weight.absmax"] = draw.scales((blocks,), size=0.2)
        text = numpy.frombuffer(json.dumps(state).encode(), dtype=numpy.uint8)
        tensors[f"weight.quant_state.bitsandbytes__{kind}"] = torch.from_numpy(text.copy())
        # Its kernel for processors errs if rows are not whole blocks; the general code does not.
        decoded = _dequantize_4bit_compute(code.reshape(-1), absmax, table, 64, (rows, columns), torch.float32)
        return tensors, decoded

    return module


def bnb8(draw, rows, columns):
    weight = torch.from_numpy((draw.codes((rows, columns), 8) - 128).astype(numpy.int8))
    largest = draw.scales((rows,), size=0.2)
    return {"weight": weight, "SCB": largest, "weight_format": torch.tensor(0, dtype=torch.uint8)}, \
        int8_vectorwise_dequant(weight, largest)


def ct(format_name, **args):
    args = {"num_bits": 8, "type": "int", "strategy": "tensor", **args}
    config = {"quant_method": "compressed-tensors", "format": format_name, "quantization_status": "compressed",
              "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": args}}}
    return config


def ct_case(format_name, kind=torch.bfloat16, **args):
    config = ct(format_name, **args)
    return config, compressed(config["config_groups"]["group_0"]["weights"], format_name, kind)


def gptq_config(bits, group, **keys):
    return {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": False, **keys}


def mixed(draw, rows, columns):
    return (modelopt_fp8("tensor") if rows == INNER else modelopt_nvfp4)(draw, rows, columns)


MIXED_LAYERS = {f"model.layers.0.{name}": {"quant_algo": "FP8"} if key in ("gate", "up") else {"quant_algo": "NVFP4", "group_size": 16}
                for key, name in MODULES.items()}

# name: (quantization_config, the format of one module)
CASES = {
    "float_tensor": ct_case("float-quantized", type="float"),
    "float_channel": ct_case("float-quantized", type="float", strategy="channel"),
    "float_group": ct_case("naive-quantized", torch.float32, type="float", strategy="group", group_size=16),
    "float_block": ct_case("float-quantized", torch.float32, type="float", strategy="block", block_structure=[24, 20]),
    "int_channel": ct_case("int-quantized", strategy="channel"),
    "int_tensor_zeros": ct_case("int-quantized", strategy="tensor", symmetric=False),
    "int_channel_zeros": ct_case("int-quantized", torch.float32, strategy="channel", symmetric=False),
    "int_group_zeros": ct_case("naive-quantized", strategy="group", group_size=8, symmetric=False),
    "pack_w4": ct_case("pack-quantized", num_bits=4, strategy="group", group_size=16),
    "pack_w4_zeros": ct_case("pack-quantized", torch.float16, num_bits=4, strategy="group", group_size=8, symmetric=False),
    "pack_w8": ct_case("pack-quantized", num_bits=8, strategy="channel"),
    "pack_w3_zeros": ct_case("pack-quantized", num_bits=3, strategy="group", group_size=16, symmetric=False),
    "pack_w5_zeros": ct_case("pack-quantized", num_bits=5, strategy="channel", symmetric=False),
    "pack_w4_order": (ct("pack-quantized", num_bits=4, strategy="group", group_size=16, actorder="group"), reordered(4, 16)),
    "nvfp4": ct_case("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16),
    "mxfp4": ct_case("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32),
    "mxfp8": ct_case("mxfp8-quantized", type="float", strategy="group", group_size=32),
    "modelopt_fp8": ({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}, modelopt_fp8("tensor")),
    "modelopt_channel": ({"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}, modelopt_fp8("channel")),
    "modelopt_nvfp4": ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
                                                                           "group_size": 16, "exclude_modules": ["lm_head", "*.router"]}},
                       modelopt_nvfp4),
    "modelopt_mixed": ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": MIXED_LAYERS}, mixed),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 16, "zero_point": True, "version": "gemm"}, awq(16)),
    "awq_whole": ({"quant_method": "awq", "bits": 4, "group_size": -1, "zero_point": True, "version": "gemm"}, awq(-1)),
    "gptq_w4": (gptq_config(4, 16, checkpoint_format="gptq"), gptq(4, 16)),
    "gptq_w4_order": (gptq_config(4, 16, desc_act=True), gptq(4, 16, act_order=True)),
    "gptq_w4_second": (gptq_config(4, 32, checkpoint_format="gptq_v2"), gptq(4, 32, second=True)),
    "gptq_w2": (gptq_config(2, -1), gptq(2, -1)),
    "gptq_w3": (gptq_config(3, 32), gptq(3, 32)),
    "gptq_w8": (gptq_config(8, 16), gptq(8, 16)),
    "bnb_nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, bnb4("nf4", False)),
    "bnb_nf4_nested": ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, bnb4("nf4", True)),
    "bnb_fp4": ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}, bnb4("fp4", False)),
    "bnb_int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, bnb8),
}

# The cases of tests/golden/checkpoints: one for each way of storing.
GOLDEN = ["float_channel", "float_block", "int_channel_zeros", "int_group_zeros", "pack_w4", "pack_w3_zeros", "pack_w4_order",
          "nvfp4", "mxfp4", "mxfp8", "modelopt_channel", "modelopt_nvfp4", "modelopt_mixed", "awq", "gptq_w4", "gptq_w4_order",
          "gptq_w3", "gptq_w8", "bnb_nf4_nested", "bnb_fp4", "bnb_int8"]


def write(folder, name, seed):
    """Writes one checkpoint and returns what is expected of it."""
    quantization, module = CASES[name]
    draw = Draw(seed)
    torch.manual_seed(seed)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=1,
                         num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=64, tie_word_embeddings=True,
                         rms_norm_eps=1e-5)
    model = LlamaForCausalLM(config).to(torch.float32).eval()
    prefix, digests, tensors = "model.layers.0.", {}, {}
    state = {key: value.to(torch.bfloat16) for key, value in model.state_dict().items()}
    state["model.embed_tokens.weight"] *= 8  # so that tokens' likelihoods differ
    for key, short in MODULES.items():
        weight = state.pop(f"{prefix}{short}.weight")
        parts, decoded = module(draw, *weight.shape)
        assert torch.isfinite(decoded).all() and decoded.dtype == torch.float32, name
        tensors |= {f"{prefix}{short}.{ending}": part.contiguous() for ending, part in parts.items()}
        digests[key] = hashlib.sha256(decoded.contiguous().numpy().tobytes()).hexdigest()
        model.get_submodule(f"{prefix}{short}").weight.data = decoded
    state.pop("lm_head.weight", None)
    for key, value in state.items():
        model.get_parameter(key).data = value.to(torch.float32)
    model.tie_weights()
    with torch.no_grad():
        logits = model(torch.tensor([TOKENS])).logits[0, :-1].double()
    nll = torch.nn.functional.cross_entropy(logits, torch.tensor(TOKENS[1:]), reduction="none")
    folder.mkdir(parents=True, exist_ok=True)
    written = {key: value for key, value in config.to_dict().items() if value is not None}
    if "quant_method" in quantization:
        written["quantization_config"] = quantization
    else:
        (folder / "hf_quant_config.json").write_text(json.dumps(quantization, indent=1) + "\n")
    (folder / "config.json").write_text(json.dumps(written, indent=1) + "\n")
    save_file(tensors | {key: value.contiguous() for key, value in state.items()}, folder / "model.safetensors")
    return {"tokens": TOKENS, "nll": [round(value, 7) for value in nll.tolist()], "sha256": digests}


def run(program, folders):
    lines = "".join(json.dumps({"model": str(folder), "tokens": TOKENS, "digests": True}) + "\n" for folder in folders)
    output = subprocess.run([program], input=lines, text=True, capture_output=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def difference(found, expected):
    """Returns what differs, in words; "" if nothing does."""
    if "error" in found:
        return found["error"]
    differ = [key for key, digest in expected["sha256"].items() if found["sha256"][f"0.{key}"] != digest]
    if differ:
        return "values of " + ", ".join(differ)
    most = max(abs(one - other) for one, other in zip(found["nll"], expected["nll"], strict=True))
    return f"NLL by {most:.2e}" if most > 1e-4 else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.golden:
        for number, name in enumerate(GOLDEN):
            expected = write(options.golden / name, name, number)
            (options.golden / name / "expected.json").write_text(json.dumps(expected) + "\n")
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as root:
        cases = [(name, seed, pathlib.Path(root) / f"{name}_{seed}") for name in CASES for seed in range(100, 100 + options.seeds)]
        expected = [write(folder, name, seed) for name, seed, folder in cases]
        for (name, seed, _), found, own in zip(cases, run(options.program, [case[2] for case in cases]), expected, strict=True):
            words = difference(found, own)
            bad += words != ""
            if words:
                print(f"{name}, seed {seed}: {words}")
    print(f"{len(CASES)} formats, {options.seeds} models each: {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
