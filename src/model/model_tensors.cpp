#include "model/model_tensors.h"

#include <algorithm>

#include "core/error.h"

namespace kvs {

namespace {

constexpr std::size_t kNamesShown = 5;

struct Extent {
  std::size_t size;
  std::string source;  // the config's keys that it follows from
};

Extent extent_of(Axis axis, const ModelConfig& config, ModelFormat format) {
  const bool hf = format == ModelFormat::kHuggingFace;
  const auto product = [&](std::string_view key, std::size_t heads) {
    return std::string(key) + " " + std::to_string(heads) + " x head size " + std::to_string(config.head_dim);
  };
  switch (axis) {
    case Axis::kVocabulary:
      return {config.vocabulary, hf ? "vocab_size" : "vocab_size or rows of token_embd"};
    case Axis::kModel:
      return {config.d_model, hf ? "hidden_size" : "embedding_length"};
    case Axis::kQueryRows:
      return {config.query_heads * config.head_dim,
              product(hf ? "num_attention_heads" : "attention.head_count", config.query_heads)};
    case Axis::kKeyRows:
      return {config.kv_heads * config.head_dim,
              product(hf ? "num_key_value_heads" : "attention.head_count_kv", config.kv_heads)};
    case Axis::kFeedForward:
      return {config.d_ff, hf ? "intermediate_size" : "feed_forward_length"};
    case Axis::kChunks:
      return {config.chunks(), "rotated channels / 2"};
    case Axis::kNone:
      break;
  }
  return {0, ""};
}

template <class Extents>
std::string shape_text(const Extents& shape) {
  std::string text = "[";
  for (const auto extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::string name_list(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > kNamesShown ? ", ..." : "");
}

std::string file_name(const TensorSpec& spec, ModelFormat format, std::size_t layer, std::string_view ending) {
  return with_layer(format == ModelFormat::kGguf ? spec.gguf : spec.hf, layer) + std::string(ending);
}

}  // namespace

ModelTensors::ModelTensors(const TensorArchive& archive, ModelFormat format, ParsedConfig& parsed)
    : archive_(&archive),
      format_(format),
      interleaving_(format == ModelFormat::kGguf && parsed.architecture->gguf_interleaved
                        ? Interleaving{parsed.config.head_dim, parsed.config.rotary_dim()}
                        : Interleaving{}),
      layers_(parsed.config.layers) {
  std::vector<std::string> missing;
  std::size_t whole_layers = layers_.size();  // layers below the first that lacks something
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const auto find_all = [&](std::span<const TensorSpec> specs) {
      for (const TensorSpec& spec : specs) {
        if ((spec.per_layer() || layer == 0) && needed(spec, parsed)) find(spec, layer, parsed, missing);
      }
    };
    find_all(parsed.architecture->tensors);
    find_all(kRopeTensors);
    if (!missing.empty()) whole_layers = std::min(whole_layers, layer);
  }
  if (!missing.empty()) {
    const StoredTensor* any = archive.tensors().empty() ? nullptr : &archive.tensors().front();
    throw Error(ErrorCode::kInput, any == nullptr ? "model" : archive.file_of(*any).string(),
                std::to_string(missing.size()) + " tensors are missing: " + name_list(missing) +
                    "; the config asks for " + std::to_string(layers_.size()) + " layers, the weights hold the first " +
                    std::to_string(whole_layers) + " whole");
  }
  note_unused(parsed);
  parsed.notes.insert(parsed.notes.end(), archive.warnings().begin(), archive.warnings().end());
}

bool ModelTensors::needed(const TensorSpec& spec, const ParsedConfig& parsed) const noexcept {
  if ((format_ == ModelFormat::kGguf ? spec.gguf : spec.hf).empty()) return false;
  return spec.role != TensorRole::kHead || !parsed.config.tied_head;
}

void ModelTensors::find(const TensorSpec& spec, std::size_t layer, const ParsedConfig& parsed,
                        std::vector<std::string>& missing) {
  Found& found = layers_[layer][static_cast<std::size_t>(spec.role)];
  const std::string name = file_name(spec, format_, layer, ".weight");
  found.weight = archive_->find(name);
  if (found.weight != nullptr) {
    check(*found.weight, spec, false, parsed.config);
    names_.push_back(name);
  } else if (!spec.optional) {
    missing.push_back(name);
  }
  if (spec.bias == BiasGroup::kNone) return;
  const bool asked = spec.bias == BiasGroup::kAttention ? parsed.attention_bias : parsed.mlp_bias;
  if (!asked && format_ == ModelFormat::kHuggingFace) return;
  const std::string bias_name = file_name(spec, format_, layer, ".bias");
  found.bias = archive_->find(bias_name);
  if (found.bias != nullptr) {
    check(*found.bias, spec, true, parsed.config);
    names_.push_back(bias_name);
  } else if (asked) {
    missing.push_back(bias_name);
  }
}

void ModelTensors::check(const StoredTensor& tensor, const TensorSpec& spec, bool bias,
                         const ModelConfig& config) const {
  const std::string where = archive_->file_of(tensor).string() + ": tensor " + tensor.name;
  std::vector<Extent> expected{extent_of(spec.rows, config, format_)};
  if (spec.columns != Axis::kNone && !bias) expected.push_back(extent_of(spec.columns, config, format_));
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
                    (format_ == ModelFormat::kGguf ? decodable_ggml_types() : decodable_safetensors_types()));
  }
}

void ModelTensors::note_unused(ParsedConfig& parsed) const {
  std::vector<std::string> used = names_, unused;
  std::ranges::sort(used);
  for (const StoredTensor& tensor : archive_->tensors()) {
    // Old checkpoints store RoPE's frequencies, which follow from the config.
    if (tensor.name.ends_with("rotary_emb.inv_freq")) continue;
    if (!std::ranges::binary_search(used, tensor.name)) unused.push_back(tensor.name);
  }
  if (unused.empty()) return;
  parsed.notes.push_back(std::to_string(unused.size()) + " tensors are not used by the config: " + name_list(unused));
}

const ModelTensors::Found& ModelTensors::found(TensorRole role, std::size_t layer) const {
  return layers_.at(layer)[static_cast<std::size_t>(role)];
}

Interleaving ModelTensors::interleaving(TensorRole role) const noexcept {
  return role == TensorRole::kQuery || role == TensorRole::kKey ? interleaving_ : Interleaving{};
}

TensorRows ModelTensors::rows(TensorRole role, std::size_t layer) const {
  return TensorRows(*archive_, *found(role, layer).weight, interleaving(role));
}

std::vector<float> ModelTensors::vector(TensorRole role, std::size_t layer) const {
  const TensorRows source = rows(role, layer);
  std::vector<float> values(source.columns());
  source.read(0, 1, values);
  return values;
}

std::vector<float> ModelTensors::bias(TensorRole role, std::size_t layer) const {
  const StoredTensor* stored = found(role, layer).bias;
  if (stored == nullptr) return {};
  std::vector<float> values(static_cast<std::size_t>(stored->columns()));
  TensorRows(*archive_, *stored, {}).read(0, 1, values);
  const Interleaving order = interleaving(role);
  if (order.head_dim == 0) return values;
  std::vector<float> ordered(values.size());
  for (std::size_t row = 0; row < values.size(); ++row) ordered[row] = values[interleaved_row(row, order)];
  return ordered;
}

}  // namespace kvs
