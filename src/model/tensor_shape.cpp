// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_shape.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/error.h"

namespace kvs::inline model {

std::string shape_text(std::span<const std::uint64_t> shape) {
  constexpr std::size_t kMaxShown = 8;
  std::string text = "[";
  for (std::size_t n = 0; n < std::min(shape.size(), kMaxShown); ++n)
    text += (n > 0 ? ", " : "") + std::to_string(shape[n]);
  return text + (shape.size() > kMaxShown ? ", \u2026] of " + std::to_string(shape.size()) + " dimensions" : "]");
}

std::string place_of(const TensorArchive& archive, const StoredTensor& tensor) {
  return archive.file_of(tensor).string() + ": tensor " + printable(tensor.name, 120);
}

namespace {

using MaybeExtent = std::optional<Extent>;

/// These return the extent of an axis that the named part of a model determines; nothing for other axes.
/// @param hf  false: the keys are those of GGUF
MaybeExtent attention_extent(TensorAxis axis, const AttentionConfig& attention, bool hf) {
  const auto product = [&](std::string_view key, std::size_t heads) {
    return Extent{heads * attention.head_dim, std::string(key) + " " + std::to_string(heads) + " x head size " +
                                                  std::to_string(attention.head_dim)};
  };
  const char* const queries = hf ? "num_attention_heads" : "attention.head_count";
  const char* const keys = hf ? "num_key_value_heads" : "attention.head_count_kv";
  switch (axis) {
    case TensorAxis::kQueryRows:
      return product(queries, attention.query_heads);
    case TensorAxis::kKeyRows:
      return product(keys, attention.kv_heads);
    case TensorAxis::kHeadDim:
      return Extent{attention.head_dim, hf ? "head_dim" : "attention.key_length"};
    case TensorAxis::kQueryHeads:
      return Extent{attention.query_heads, queries};
    case TensorAxis::kKvHeads:
      return Extent{attention.kv_heads, keys};
    default:
      return std::nullopt;
  }
}

MaybeExtent latent_extent(TensorAxis axis, const AttentionConfig& attention, bool hf) {
  const std::size_t heads = attention.query_heads;
  switch (axis) {
    case TensorAxis::kQueryLatentRank:
      return Extent{attention.latent.query_rank, hf ? "q_lora_rank" : "attention.q_lora_rank"};
    case TensorAxis::kLatentRank:
      return Extent{attention.latent.rank, hf ? "kv_lora_rank" : "attention.kv_lora_rank"};
    case TensorAxis::kSharedKey:
      return Extent{attention.shared_key_dim(), hf ? "qk_rope_head_dim" : "rope.dimension_count"};
    case TensorAxis::kPlainDim:
      return Extent{attention.latent.plain_dim, "channels of a head that do not rotate"};
    case TensorAxis::kPlainQueryRows:
      return Extent{heads * attention.latent.plain_dim, "heads x channels of a head that do not rotate"};
    case TensorAxis::kRotatedQueryRows:
      return Extent{heads * attention.shared_key_dim(), "heads x channels of a head that rotate"};
    case TensorAxis::kLatentRows:
      return Extent{heads * attention.latent.rank, "heads x channels of the latent"};
    case TensorAxis::kLatentValueRows:
      return Extent{heads * attention.latent.value_dim, "heads x channels of a head's values"};
    default:
      return std::nullopt;
  }
}

MaybeExtent index_extent(TensorAxis axis, const TokenIndexConfig& index, bool hf) {
  switch (axis) {
    case TensorAxis::kIndexRows:
      return Extent{index.heads * index.dim, "index_n_heads x index_head_dim"};
    case TensorAxis::kIndexDim:
      return Extent{index.dim, hf ? "index_head_dim" : "attention.indexer.key_length"};
    case TensorAxis::kIndexHeads:
      return Extent{index.heads, hf ? "index_n_heads" : "attention.indexer.head_count"};
    default:
      return std::nullopt;
  }
}

MaybeExtent feed_forward_extent(TensorAxis axis, const FeedForwardConfig& block, std::size_t d_model, bool hf) {
  const ExpertsConfig& experts = block.experts;
  switch (axis) {
    case TensorAxis::kFeedForward:
      return Extent{block.d_ff, hf ? "intermediate_size" : "feed_forward_length"};
    case TensorAxis::kExperts:
      return Extent{experts.count, hf ? "number of experts" : "expert_count"};
    case TensorAxis::kExpertWidth:
      return Extent{experts.d_ff, hf ? "width of an expert" : "expert_feed_forward_length"};
    case TensorAxis::kSharedWidth:
      return Extent{experts.shared_d_ff, hf ? "width of the shared expert" : "expert_shared_feed_forward_length"};
    case TensorAxis::kLatent:
      return Extent{experts.latent, "moe_latent_size"};
    case TensorAxis::kExpertModel:
      return Extent{experts.channels(d_model), "channels of an expert's input"};
    default:
      return std::nullopt;
  }
}

MaybeExtent mixer_extent(TensorAxis axis, const RecurrenceConfig& mixer) {
  switch (axis) {
    case TensorAxis::kMixerKeyRows:
      return Extent{mixer.key_rows(), "key heads x key head size of the recurrent block"};
    case TensorAxis::kMixerValueRows:
      return Extent{mixer.value_rows(), "value heads x value head size of the recurrent block"};
    case TensorAxis::kMixerKeyHeads:
      return Extent{mixer.key_heads, "key heads of the recurrent block"};
    case TensorAxis::kMixerHeads:
      return Extent{mixer.value_heads, "value heads of the recurrent block"};
    case TensorAxis::kMixerChannels:
      return Extent{mixer.channels(), "channels of the convolution"};
    case TensorAxis::kMixerKernel:
      return Extent{mixer.kernel, "taps of the convolution"};
    case TensorAxis::kMixerHeadDim:
      return Extent{mixer.value_head_dim, "value head size of the recurrent block"};
    default:
      return std::nullopt;
  }
}

MaybeExtent stream_extent(TensorAxis axis, const ModelConfig& config, bool hf) {
  const std::size_t count = config.streams.count, inputs = config.layer_inputs;
  switch (axis) {
    case TensorAxis::kLayerInput:
      return Extent{inputs, "hidden_size_per_layer_input"};
    case TensorAxis::kLayerInputs:
      return Extent{inputs * config.layers(), "hidden_size_per_layer_input x num_hidden_layers"};
    case TensorAxis::kInputVocabulary:
      return Extent{config.layer_input_vocabulary, "vocab_size_per_layer_input"};
    case TensorAxis::kStreams:
      return Extent{count, "altup_num_inputs"};
    case TensorAxis::kStreamPairs:
      return Extent{count * count, "altup_num_inputs x altup_num_inputs"};
    case TensorAxis::kOtherStreams:
      return Extent{count - 1, hf ? "altup_num_inputs - 1" : "altup.num_inputs - 1"};
    case TensorAxis::kOtherStreamRows:
      return Extent{(count - 1) * config.d_model, "other streams x channels of the model"};
    case TensorAxis::kLaurel:
      return Extent{config.laurel_rank, "laurel_rank"};
    default:
      return std::nullopt;
  }
}

MaybeExtent model_extent(TensorAxis axis, const ModelConfig& config, bool hf) {
  switch (axis) {
    case TensorAxis::kVocabulary:
      return Extent{config.vocabulary, hf ? "vocab_size" : "rows of token_embd"};
    case TensorAxis::kModel:
      return Extent{config.d_model, hf ? "hidden_size" : "embedding_length"};
    case TensorAxis::kChunks:
      return Extent{config.chunks(), "rotated channels / 2"};
    case TensorAxis::kOne:
      return Extent{1, "one"};
    default:
      return std::nullopt;
  }
}

}  // namespace

Extent extent_of(TensorAxis axis, const ModelConfig& config, std::size_t layer, ModelFormat format) {
  const LayerConfig& of_layer = config.layer[layer];
  const bool hf = format == ModelFormat::kHuggingFace;
  if (const MaybeExtent found = model_extent(axis, config, hf)) return *found;
  if (const MaybeExtent found = attention_extent(axis, of_layer.attention, hf)) return *found;
  if (const MaybeExtent found = feed_forward_extent(axis, of_layer.feed_forward, config.d_model, hf)) return *found;
  if (const MaybeExtent found = mixer_extent(axis, of_layer.recurrence)) return *found;
  if (const MaybeExtent found = latent_extent(axis, of_layer.attention, hf)) return *found;
  if (const MaybeExtent found = index_extent(axis, of_layer.attention.latent.index, hf)) return *found;
  return stream_extent(axis, config, hf).value_or(Extent{0, ""});
}

bool is_transposed(std::span<const std::uint64_t> shape, std::span<const TensorSpec> parts, const ModelConfig& config,
                   std::size_t layer, ModelFormat format) {
  if (!parts.front().hf_transposed || format != ModelFormat::kHuggingFace) return false;
  if (!parts.front().hf_either_way || shape.size() != 3) return true;
  std::size_t rows = 0;
  for (const TensorSpec& part : parts) rows += extent_of(part.rows, config, layer, format).size;
  const std::size_t columns = extent_of(parts.front().columns, config, layer, format).size;
  return shape[1] != rows || shape[2] != columns;
}

void check_shape(const TensorArchive& archive, const StoredTensor& tensor, std::span<const std::uint64_t> shape,
                 std::span<const TensorSpec> parts, bool bias, bool stacked, const ModelConfig& config,
                 std::size_t layer, ModelFormat format) {
  std::vector<Extent> expected{{0, ""}};
  for (const TensorSpec& part : parts) {
    const Extent rows = extent_of(part.rows, config, layer, format);
    expected[0].size += rows.size;
    expected[0].source += (expected[0].source.empty() ? "" : " + ") + rows.source;
  }
  if (parts.front().columns != TensorAxis::kNone && !bias) {
    expected.push_back(extent_of(parts.front().columns, config, layer, format));
  }
  if (is_transposed(shape, parts, config, layer, format)) std::ranges::reverse(expected);
  if (stacked) expected.insert(expected.begin(), extent_of(TensorAxis::kExperts, config, layer, format));
  if (const TensorAxis by = parts.front().by_head; by != TensorAxis::kNone) {
    const Extent heads = extent_of(by, config, layer, format);
    expected[0] = {expected[0].size / heads.size, expected[0].source + " / " + heads.source};
    expected.insert(expected.begin(), heads);
  }
  // In GGUF, vectors of a recurrent block are columns, or have a row for each group.
  if (format == ModelFormat::kGguf && is_of_mixer(parts.front().role) && expected.size() == 1 && shape.size() == 2 &&
      shape[0] != 0 && expected[0].size % shape[0] == 0)
    expected = {{static_cast<std::size_t>(shape[0]), "groups"},
                {expected[0].size / static_cast<std::size_t>(shape[0]), expected[0].source + " / groups"}};
  // A vector may be stored as a matrix of one row, and the reverse.
  if (expected.size() == 1 && shape.size() == 2 && shape[0] == 1) expected.insert(expected.begin(), {1, "1"});
  if (parts.front().role == TensorRole::kMixerTaps && shape.size() == 3)
    expected.insert(expected.begin() + 1, {1, "1"});
  if (parts.front().rows == TensorAxis::kOne && shape.size() == 1 && expected.size() == 2)
    expected.erase(expected.begin());
  const bool fits = std::ranges::equal(shape, expected, {}, {}, &Extent::size);
  if (!fits) {
    std::vector<std::uint64_t> sizes;
    std::string sources;
    for (const Extent& extent : expected) {
      sizes.push_back(extent.size);
      sources += (sources.empty() ? "" : ", ") + extent.source;
    }
    throw Error(ErrorCode::kInput, place_of(archive, tensor),
                "found shape " + shape_text(shape) + ", expected " + shape_text(sizes) + " (" + sources + ")");
  }
}

void check_type(const TensorArchive& archive, const StoredTensor& tensor, ModelFormat format) {
  if (tensor.type == nullptr) {
    throw Error(ErrorCode::kUnsupported, place_of(archive, tensor),
                "found type " + tensor.type_name + ", supported are: " +
                    (format == ModelFormat::kGguf ? decodable_ggml_types() : decodable_safetensors_types()));
  }
  if (format == ModelFormat::kHuggingFace && tensor.type_name.starts_with("F8_")) {
    throw Error(ErrorCode::kUnsupported, place_of(archive, tensor),
                "found type " + tensor.type_name + ", which is read with a quantization_config in config.json only");
  }
}

}  // namespace kvs::inline model
