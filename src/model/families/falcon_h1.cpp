// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/recurrence.h"
#include "model/families/tensors.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr std::array kFalconModel{
    kTokens, TensorSpec{kFinalNorm, "model.final_layernorm", "output_norm", kModel, kNone}, kLmHead};
constexpr auto kFalconAttention = pre_norm_attention(B::kNone, B::kNone);
constexpr std::array kFalconFeedForward{
    TensorSpec{kFeedForwardNorm, "model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm", kModel, kNone},
    TensorSpec{kGate, "model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", tensors::kFeedForward, kModel},
    TensorSpec{kUp, "model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", tensors::kFeedForward, kModel},
    TensorSpec{kDown, "model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", kModel, tensors::kFeedForward}};
constexpr auto kFalconRecurrence = mamba2({.input = "model.layers.{}.mamba.in_proj",
                                           .taps = "model.layers.{}.mamba.conv1d",
                                           .decay = "model.layers.{}.mamba.A_log",
                                           .step_bias = "model.layers.{}.mamba.dt_bias",
                                           .skip = "model.layers.{}.mamba.D",
                                           .norm = "model.layers.{}.mamba.norm",
                                           .output = "model.layers.{}.mamba.out_proj"});

float factor(const JsonCursor& root, std::string_view key) { return static_cast<float>(hf_positive(root, key, 1)); }

/// Reads a list of factors, each 1 if the key is missing.
template <std::size_t Count>
std::array<float, Count> factors(const JsonCursor& root, std::string_view key) {
  std::array<float, Count> values;
  values.fill(1);
  if (!root.has(key)) return values;
  const JsonCursor list = root.at(key);
  if (list.array_size() != Count) list.fail(std::to_string(Count) + " numbers");
  for (std::size_t n = 0; n < Count; ++n) values[n] = static_cast<float>(list.at(n).positive_f32());
  return values;
}

/// Multipliers of inputs and outputs are those of the weights between them, which have no biases.
void read_factors(const JsonCursor& root, ParsedConfig& parsed) {
  const float attention = factor(root, "attention_in_multiplier"), mixer = factor(root, "ssm_in_multiplier");
  const auto mixers = factors<5>(root, "ssm_multipliers");  // of gate, x, B, C, dt
  const auto network = factors<2>(root, "mlp_multipliers");
  parsed.factors = {{kQuery, attention},
                    {kKey, attention * factor(root, "key_multiplier")},
                    {kValue, attention},
                    {kOutput, factor(root, "attention_out_multiplier")},
                    {kMixerGate, mixer * mixers[0]},
                    {kMixerValue, mixer * mixers[1]},
                    {kMixerKey, mixer * mixers[2]},
                    {kMixerQuery, mixer * mixers[3]},
                    {kMixerStep, mixer * mixers[4]},
                    {kMixerOutput, factor(root, "ssm_out_multiplier")},
                    {kGate, network[0]},
                    {kDown, network[1]}};
  parsed.config.embedding_scale = factor(root, "embedding_multiplier");
}

/// Every layer has both blocks, which read the same input.
void read_falcon(const JsonCursor& root, ParsedConfig& parsed) {
  check_mixer_activation(root, "hidden_act");
  RecurrenceConfig block = read_mamba2(root, {.inner = "mamba_d_ssm", .inner_default = 1024});
  read_step_limits(root, block);
  if (!hf_switch(root, "mamba_rms_norm", false)) block.norm_channels = 0;
  block.gate_first = !hf_switch(root, "mamba_norm_before_gate", true);
  for (LayerConfig& layer : parsed.config.layer) layer.recurrence = block;
  read_factors(root, parsed);
}

/// The multipliers are those of the file's weights.
void read_gguf_falcon(const GgufKeys& keys, ParsedConfig& parsed) {
  const RecurrenceConfig block = read_gguf_mamba2(keys, "blk.0.ssm_norm.weight");
  for (LayerConfig& layer : parsed.config.layer) layer.recurrence = block;
}

constexpr std::array<std::string_view, 11> kFalconKeyNames{
    "attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier", "key_multiplier",
    "mamba_norm_before_gate",  "mamba_rms_norm",           "mlp_multipliers",      "num_logits_to_keep",
    "ssm_in_multiplier",       "ssm_multipliers",          "ssm_out_multiplier"};
constexpr auto kFalconKeys = join(kMamba2KeyNames, kFalconKeyNames);
constexpr RecurrenceRules kFalconRules{
    .read = read_falcon, .keys = kFalconKeys, .tensors = kFalconRecurrence, .read_gguf = read_gguf_falcon};

}  // namespace

constexpr Architecture kFalconH1{.name = "falcon_h1",
                                 .hf_class = "FalconH1ForCausalLM",
                                 .hf_base_class = "FalconH1Model",
                                 .model_type = "falcon_h1",
                                 .gguf = "falcon-h1",
                                 .model_tensors = kFalconModel,
                                 .attention_tensors = kFalconAttention,
                                 .feed_forward_tensors = kFalconFeedForward,
                                 .recurrence = &kFalconRules,
                                 .keys = {.norm_epsilon_default = 1e-5F,
                                          .convolution_bias = "mamba_conv_bias",
                                          .convolution_bias_default = true,
                                          .logit_scale = "lm_head_multiplier",
                                          .kv_heads_default = 8,
                                          .context_default = 8192}};

}  // namespace kvs::inline model
