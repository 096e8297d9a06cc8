# SPDX-License-Identifier: Apache-2.0
"""Inputs of commands.py: a tiny random Llama, texts, token ids and questions. The same bytes each time."""
import json
import random
import struct

LAYERS, D_MODEL, QUERY_HEADS, KV_HEADS, HEAD_DIM, D_FF, VOCABULARY = 4, 256, 4, 2, 64, 96, 64
LETTERS = "#abcdefghijklmnopqrstuvwxyz0123456789.,:?!-'"


def shapes():
    """Returns names and shapes of the tensors, in the form of Hugging Face."""
    yield "model.embed_tokens.weight", (VOCABULARY, D_MODEL)
    yield "model.norm.weight", (D_MODEL,)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (D_MODEL,)
        yield prefix + "post_attention_layernorm.weight", (D_MODEL,)
        yield prefix + "self_attn.q_proj.weight", (QUERY_HEADS * HEAD_DIM, D_MODEL)
        yield prefix + "self_attn.k_proj.weight", (KV_HEADS * HEAD_DIM, D_MODEL)
        yield prefix + "self_attn.v_proj.weight", (KV_HEADS * HEAD_DIM, D_MODEL)
        yield prefix + "self_attn.o_proj.weight", (D_MODEL, QUERY_HEADS * HEAD_DIM)
        yield prefix + "mlp.gate_proj.weight", (D_FF, D_MODEL)
        yield prefix + "mlp.up_proj.weight", (D_FF, D_MODEL)
        yield prefix + "mlp.down_proj.weight", (D_MODEL, D_FF)


def values(shape, draw):
    """Returns uniform weights of a matrix, of standard deviation 1.2 / sqrt(columns); a norm's gains are 1."""
    if len(shape) == 1:
        return [1.0] * shape[0]
    scale = 2.0 / shape[1] ** 0.5
    return [scale * (2.0 * draw.random() - 1.0) for _ in range(shape[0] * shape[1])]


def write_weights(path):
    draw = random.Random(7)
    header, data = {}, b""
    for name, shape in shapes():
        tensor = values(shape, draw)
        begin = len(data)
        data += struct.pack(f"<{len(tensor)}f", *tensor)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tokenizer():
    """Tokens of single characters; capitals become small letters, and a missing character becomes #."""
    vocabulary = {letter: number for number, letter in enumerate(LETTERS + "\u0120\u010a")}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": "#", "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}
    return {"version": "1.0", "added_tokens": [], "normalizer": {"type": "Lowercase"}, "pre_tokenizer": level,
            "post_processor": None, "decoder": level, "model": model}


def write_model(folder):
    folder.mkdir()
    write_weights(folder / "model.safetensors")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": D_MODEL,
              "intermediate_size": D_FF, "num_hidden_layers": LAYERS, "num_attention_heads": QUERY_HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "vocab_size": VOCABULARY,
              "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "#"}))


def write_wordnet(folder):
    """A WordNet in which "rays" and "beam" are one synset."""
    folder.mkdir()
    for part in ("noun", "verb", "adj", "adv"):
        for file in ("index.", "data."):
            (folder / (file + part)).write_text("  the licence\n")
    (folder / "index.noun").write_text("rays n 1 0 1 0 00000000  \nbeam n 1 0 1 0 00000000  \n")
    (folder / "data.noun").write_text("00000000 19 n 02 rays 0 beam 0 000 | light  \n")


def write_texts(folder):
    draw = random.Random(11)
    lines = ([draw.randrange(VOCABULARY) for _ in range(150)] for _ in range(3))
    (folder / "tokens.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "rays.txt").write_text("if all the rays are at one place, then " * 20)
    words = ["light", "is", "a", "wave", "and", "ice", "cold", "7", "prisms"]
    (folder / "other.txt").write_text(" ".join(draw.choice(words) + draw.choice(["", ".", ","]) for _ in range(200)))
    questions = [{"context": "ice is cold.", "question": "what is cold?", "answers": ["ice", "snow"]},
                 {"context": "ice is cold.", "question": "ice is", "choices": ["hot", "cold"], "answer": 1}]
    (folder / "questions.jsonl").write_text("".join(json.dumps(question) + "\n" for question in questions))


def write_inputs(folder):
    folder.mkdir(parents=True)
    write_model(folder / "model")
    write_wordnet(folder / "wordnet")
    write_texts(folder)
