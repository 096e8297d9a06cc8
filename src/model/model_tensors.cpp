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
    case Axis::kHeadDim:
      return {config.head_dim, hf ? "head_dim" : "attention.key_length"};
    case Axis::kNone:
      break;
  }
  return {0, ""};
}

template <class Extents>
std::string shape_text(const Extents& shape) {
  constexpr std::size_t kMostShown = 8;
  std::string text = "[";
  for (std::size_t n = 0; n < std::min(shape.size(), kMostShown); ++n)
    text += (n > 0 ? ", " : "") + std::to_string(shape[n]);
  return text + (shape.size() > kMostShown ? ", \u2026] of " + std::to_string(shape.size()) + " dimensions" : "]");
}

std::string name_list(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > kNamesShown ? ", ..." : "");
}

std::string_view name_in(const TensorSpec& spec, ModelFormat format) {
  return format == ModelFormat::kGguf ? spec.gguf : spec.hf;
}

std::string file_name(const TensorSpec& spec, ModelFormat format, std::size_t layer, std::string_view ending) {
  return with_layer(name_in(spec, format), layer) + std::string(ending);
}

bool is_norm(TensorRole role) {
  switch (role) {
    case TensorRole::kFinalNorm:
    case TensorRole::kAttentionNorm:
    case TensorRole::kQueryNorm:
    case TensorRole::kKeyNorm:
    case TensorRole::kAttentionOutputNorm:
    case TensorRole::kFeedForwardNorm:
    case TensorRole::kFeedForwardOutputNorm:
      return true;
    default:
      return false;
  }
}

}  // namespace

ModelTensors::ModelTensors(const TensorArchive& archive, ModelFormat format, ParsedConfig& parsed)
    : archive_(&archive),
      format_(format),
      norms_less_one_(format == ModelFormat::kHuggingFace && parsed.architecture->hf_norms_less_one),
      interleaving_(format == ModelFormat::kGguf && parsed.architecture->gguf_interleaved
                        ? Interleaving{parsed.config.head_dim, parsed.config.rotary_dim()}
                        : Interleaving{}),
      layers_(parsed.config.layers) {
  std::vector<std::string> missing;
  std::size_t whole_layers = layers_.size();  // layers below the first that lacks something
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    find_all(parsed.architecture->tensors, layer, parsed, missing);
    find_all(kRopeTensors, layer, parsed, missing);
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
  if (name_in(spec, format_).empty()) return false;
  return spec.role != TensorRole::kHead || !parsed.config.tied_head;
}

void ModelTensors::find_all(std::span<const TensorSpec> table, std::size_t layer, const ParsedConfig& parsed,
                            std::vector<std::string>& missing) {
  for (std::size_t begin = 0; begin < table.size();) {
    std::size_t end = begin + 1;
    while (end < table.size() && name_in(table[end], format_) == name_in(table[begin], format_)) ++end;
    const TensorSpec& spec = table[begin];
    if ((spec.per_layer() || layer == 0) && needed(spec, parsed)) {
      find(table.subspan(begin, end - begin), layer, parsed, missing);
    }
    begin = end;
  }
}

/// Whether the config asks for a bias.
bool ModelTensors::biased(const TensorSpec& spec, const ParsedConfig& parsed) const noexcept {
  switch (spec.bias) {
    case BiasGroup::kAlways:
      return true;
    case BiasGroup::kAttention:
      return parsed.attention_bias;
    case BiasGroup::kFeedForward:
      return parsed.mlp_bias;
    case BiasGroup::kNone:
      break;
  }
  return false;
}

/// Rows of part `index`: stacked in the table's order, or head by head.
RowPart ModelTensors::part_of(Parts parts, std::size_t index, const ParsedConfig& parsed) const {
  const auto rows_of = [&](const TensorSpec& spec) { return extent_of(spec.rows, parsed.config, format_).size; };
  const std::size_t rows = rows_of(parts[index]);
  if (format_ == ModelFormat::kHuggingFace && parsed.architecture->hf_heads_interleaved && parts.size() > 1) {
    const std::size_t run = parsed.config.head_dim;
    return {.first = index * run, .rows = rows, .run = run, .stride = parts.size() * run};
  }
  std::size_t first = 0;
  for (const TensorSpec& before : parts.first(index)) first += rows_of(before);
  return {.first = first, .rows = rows, .run = rows, .stride = rows};
}

const StoredTensor* ModelTensors::find_checked(Parts parts, const std::string& name, bool bias,
                                               const ModelConfig& config) {
  const StoredTensor* tensor = archive_->find(name);
  if (tensor == nullptr) return nullptr;
  check(*tensor, parts, bias, config);
  names_.push_back(name);
  return tensor;
}

void ModelTensors::find(Parts parts, std::size_t layer, const ParsedConfig& parsed, std::vector<std::string>& missing) {
  const TensorSpec& spec = parts.front();
  const std::string name = file_name(spec, format_, layer, ".weight");
  const StoredTensor *weight = find_checked(parts, name, false, parsed.config), *bias = nullptr;
  if (weight == nullptr && format_ == ModelFormat::kHuggingFace && !spec.hf_other.empty()) {
    weight = find_checked(parts, with_layer(spec.hf_other, layer) + ".weight", false, parsed.config);
  }
  if (weight == nullptr && !spec.optional) missing.push_back(name);
  const bool asked = biased(spec, parsed);
  if (asked || (spec.bias != BiasGroup::kNone && format_ == ModelFormat::kGguf)) {
    const std::string bias_name = file_name(spec, format_, layer, ".bias");
    bias = find_checked(parts, bias_name, true, parsed.config);
    if (bias == nullptr && asked) missing.push_back(bias_name);
  }
  for (std::size_t index = 0; index < parts.size(); ++index) {
    layers_[layer][static_cast<std::size_t>(parts[index].role)] = {
        .weight = weight, .bias = bias, .part = part_of(parts, index, parsed)};
  }
}

void ModelTensors::check(const StoredTensor& tensor, Parts parts, bool bias, const ModelConfig& config) const {
  const std::string where = archive_->file_of(tensor).string() + ": tensor " + tensor.name;
  std::vector<Extent> expected{{0, ""}};
  for (const TensorSpec& part : parts) {
    const Extent rows = extent_of(part.rows, config, format_);
    expected[0].size += rows.size;
    expected[0].source += (expected[0].source.empty() ? "" : " + ") + rows.source;
  }
  if (parts.front().columns != Axis::kNone && !bias) {
    expected.push_back(extent_of(parts.front().columns, config, format_));
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
  const Found& stored = found(role, layer);
  return TensorRows(*archive_, *stored.weight, interleaving(role), stored.part);
}

namespace {

/// All values of a stored vector.
std::vector<float> read_vector(const TensorArchive& archive, const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.columns()));
  TensorRows(archive, tensor, {}, {.first = 0, .rows = 1, .run = 1, .stride = 1}).read(0, 1, values);
  return values;
}

}  // namespace

std::vector<float> ModelTensors::vector(TensorRole role, std::size_t layer) const {
  std::vector<float> values = read_vector(*archive_, *found(role, layer).weight);
  if (norms_less_one_ && is_norm(role)) {
    for (float& value : values) value += 1.0F;
  }
  return values;
}

std::vector<float> ModelTensors::bias(TensorRole role, std::size_t layer) const {
  const Found& stored = found(role, layer);
  if (stored.bias == nullptr) return {};
  const std::vector<float> values = read_vector(*archive_, *stored.bias);
  const Interleaving order = interleaving(role);
  std::vector<float> ordered(stored.part.rows);
  for (std::size_t row = 0; row < ordered.size(); ++row) {
    ordered[row] = values[stored.part.stored(order.head_dim == 0 ? row : interleaved_row(row, order))];
  }
  return ordered;
}

}  // namespace kvs
