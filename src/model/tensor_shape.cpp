#include "model/tensor_shape.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace kvs::inline model {

namespace {

template <class Extents>
std::string shape_text(const Extents& shape) {
  constexpr std::size_t kMaxShown = 8;
  std::string text = "[";
  for (std::size_t n = 0; n < std::min(shape.size(), kMaxShown); ++n)
    text += (n > 0 ? ", " : "") + std::to_string(shape[n]);
  return text + (shape.size() > kMaxShown ? ", \u2026] of " + std::to_string(shape.size()) + " dimensions" : "]");
}

}  // namespace

Extent extent_of(TensorAxis axis, const ModelConfig& config, ModelFormat format) {
  const bool hf = format == ModelFormat::kHuggingFace;
  const auto product = [&](std::string_view key, std::size_t heads) {
    return std::string(key) + " " + std::to_string(heads) + " x head size " + std::to_string(config.head_dim());
  };
  switch (axis) {
    case TensorAxis::kVocabulary:
      return {config.vocabulary, hf ? "vocab_size" : "rows of token_embd"};
    case TensorAxis::kModel:
      return {config.d_model, hf ? "hidden_size" : "embedding_length"};
    case TensorAxis::kQueryRows:
      return {config.query_heads() * config.head_dim(),
              product(hf ? "num_attention_heads" : "attention.head_count", config.query_heads())};
    case TensorAxis::kKeyRows:
      return {config.kv_heads() * config.head_dim(),
              product(hf ? "num_key_value_heads" : "attention.head_count_kv", config.kv_heads())};
    case TensorAxis::kFeedForward:
      return {config.d_ff(), hf ? "intermediate_size" : "feed_forward_length"};
    case TensorAxis::kChunks:
      return {config.chunks(), "rotated channels / 2"};
    case TensorAxis::kHeadDim:
      return {config.head_dim(), hf ? "head_dim" : "attention.key_length"};
    case TensorAxis::kNone:
      break;
  }
  return {0, ""};
}

void check_shape(const TensorArchive& archive, const StoredTensor& tensor, std::span<const TensorSpec> parts, bool bias,
                 const ModelConfig& config, ModelFormat format) {
  const std::string where = archive.file_of(tensor).string() + ": tensor " + tensor.name;
  std::vector<Extent> expected{{0, ""}};
  for (const TensorSpec& part : parts) {
    const Extent rows = extent_of(part.rows, config, format);
    expected[0].size += rows.size;
    expected[0].source += (expected[0].source.empty() ? "" : " + ") + rows.source;
  }
  if (parts.front().columns != TensorAxis::kNone && !bias) {
    expected.push_back(extent_of(parts.front().columns, config, format));
  }
  const bool fits = std::ranges::equal(tensor.shape, expected, {}, {}, &Extent::size);
  if (!fits) {
    std::vector<std::size_t> sizes;
    std::string sources;
    for (const Extent& extent : expected) {
      sizes.push_back(extent.size);
      sources += (sources.empty() ? "" : ", ") + extent.source;
    }
    throw Error(ErrorCode::kInput, where,
                "found shape " + shape_text(tensor.shape) + ", expected " + shape_text(sizes) + " (" + sources + ")");
  }
  if (tensor.type == nullptr) {
    throw Error(ErrorCode::kUnsupported, where,
                "found type " + tensor.type_name + ", supported are: " +
                    (format == ModelFormat::kGguf ? decodable_ggml_types() : decodable_safetensors_types()));
  }
}

}  // namespace kvs::inline model
