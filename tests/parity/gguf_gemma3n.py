# SPDX-License-Identifier: Apache-2.0
"""The content of a GGUF of Gemma 3n, in llama.cpp's keys, names and orders."""
import numpy as np
import torch

# AltUp's projections of the streams after the first: names in Transformers and in the file, [stream, d_model, d_model].
STACKED = {"altup_projections": "altup_proj.weight", "altup_unembed_projections": "altup_unembd_proj.weight"}


def add_gemma3n(writer, config):
    if not config.altup_correct_scale:
        raise ValueError("found altup_correct_scale false, which a GGUF of gemma3n does not state")
    writer.add_altup_active_idx(config.altup_active_idx)
    writer.add_altup_num_inputs(config.altup_num_inputs)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    shares = torch.tensor(config.activation_sparsity_pattern, dtype=torch.float32)
    writer.add_activation_sparsity_scale(torch.distributions.normal.Normal(0, 1).icdf(shares).tolist())
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])
    if config.final_logit_softcapping:
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def is_stacked(name):
    return any(part in name for part in STACKED)


def stacked_tensors(model):
    """Yields (name in the file, values)."""
    for part, target in STACKED.items():
        projections = [parameter for name, parameter in model.named_parameters() if part in name]
        yield target, np.stack([each.detach().numpy() for each in projections])


def tensors_of(name, data, config):
    """Yields (name in the file, values) of a tensor that the gguf package does not name whole, and of the table of
    layers' inputs. llama.cpp asks for a row for each token; its converter appends zeros. Transformers takes the first row
    for tokens beyond the table."""
    if name.endswith("altup.correct_output_scale"):
        yield f"blk.{name.split('.layers.')[1].split('.')[0]}.altup_correct_scale.weight", data
    if "embed_tokens_per_layer" in name:
        beyond = np.repeat(data[:1], config.vocab_size - len(data), axis=0)
        yield "per_layer_token_embd.weight", np.concatenate([data, beyond])
