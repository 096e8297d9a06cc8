# SPDX-License-Identifier: Apache-2.0
"""Times the operations of a decoder's layers in Transformers, under the names of gpu_speed's profile."""
import collections
import statistics
import time

import torch


class HostEvent:
    """Replaces a CUDA event on a device whose operations are complete when they return."""

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


class LayerTimes:
    """Records events before and after each module of the layers of a Llama-like model; nothing waits within a pass."""

    def __init__(self, model, device):
        self.cuda, self.spans = device == "cuda", []
        for layer in model.model.layers:
            parts = {"layer": layer, "norms": [layer.input_layernorm, layer.post_attention_layernorm], "self_attn": layer.self_attn,
                     "qkv": [layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj], "output": layer.self_attn.o_proj,
                     "mlp": layer.mlp, "down": layer.mlp.down_proj}
            for name, modules in parts.items():
                for module in modules if isinstance(modules, list) else [modules]:
                    self.watch(name, module)

    def event(self):
        event = torch.cuda.Event(enable_timing=True) if self.cuda else HostEvent()
        event.record()
        return event

    def watch(self, name, module):
        begun = []
        module.register_forward_pre_hook(lambda *_: begun.append(self.event()))
        module.register_forward_hook(lambda *_: self.spans.append((name, begun.pop(), self.event())))

    def one_pass(self, work):
        """Seconds of all layers by operation."""
        self.spans.clear()
        work()
        if self.cuda:
            torch.cuda.synchronize()
        t = collections.Counter()
        for name, begin, end in self.spans:
            t[name] += begin.elapsed_time(end) / 1e3
        return {"norms": t["norms"], "qkv product": t["qkv"], "heads, RoPE, attention": t["self_attn"] - t["qkv"] - t["output"],
                "output product": t["output"], "gate and up products, activation": t["mlp"] - t["down"], "down product": t["down"],
                "rest": t["layer"] - t["norms"] - t["self_attn"] - t["mlp"]}

    def medians(self, passes, work):
        self.one_pass(work)  # warms up
        found = [self.one_pass(work) for _ in range(passes)]
        return {name: statistics.median(times[name] for times in found) for name in found[0]}
