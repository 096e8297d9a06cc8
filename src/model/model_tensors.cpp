// SPDX-License-Identifier: Apache-2.0
#include "model/model_tensors.h"

#include <algorithm>

#include "core/error.h"
#include "model/composite.h"
#include "model/stored_names.h"

namespace kvs::inline model {

namespace {

constexpr std::size_t kNamesShown = 5;

std::string name_list(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > kNamesShown ? ", ..." : "");
}

/// Returns true if the file holds at least half of the names when `found` replaces their prefix `expected`.
bool is_beginning(const TensorArchive& archive, std::span<const std::string> names, std::string_view found,
                  std::string_view expected) {
  const auto is_stored = [&](const std::string& name) {
    const std::string other = std::string(found).append(name, std::min(expected.size(), name.size()));
    return name.starts_with(expected) && find_any(archive, std::span(&other, 1)) != nullptr;
  };
  return 2 * std::ranges::count_if(names, is_stored) >= std::ssize(names);
}

/// Returns both prefixes, for a message, if the file's names begin with another prefix than the missing ones, as those
/// of a wrapped module do (`_orig_mod.` of torch.compile, `module.` of DataParallel); otherwise "".
std::string other_beginning(const TensorArchive& archive, std::span<const std::string> missing) {
  const std::string_view name = missing.front();
  // Only up to the layer's number, which is not part of a prefix.
  const std::size_t last = std::min(name.find_first_of("0123456789"), name.rfind('.'));
  for (std::size_t kept = 0; kept < last; kept = name.find('.', kept) + 1) {
    const std::string_view expected = name.substr(0, kept), rest = name.substr(kept);
    for (const StoredTensor& tensor : archive.tensors()) {
      if (!tensor.name.ends_with(rest)) continue;
      const std::string found = tensor.name.substr(0, tensor.name.size() - rest.size());
      const bool is_whole = found.empty() || found.ends_with('.');
      if (is_whole && found != expected && is_beginning(archive, missing, found, expected))
        return "; names in the file begin with \"" + printable(found) + "\", expected \"" + std::string(expected) +
               "\"";
    }
  }
  return {};
}

std::string skipped_note(std::size_t count, std::span<const std::string_view> parts) {
  std::string text = "skipped " + std::to_string(count) + (count == 1 ? " tensor of: " : " tensors of: ");
  for (std::size_t n = 0; n < parts.size(); ++n) text += (n > 0 ? ", " : "") + std::string(parts[n]);
  return text;
}

/// Returns true if a name is that of one expert's or one head's tensor.
bool holds_each(std::string_view name) { return name.find("{}") != name.rfind("{}"); }
bool is_of_input(TensorRole role) {
  return role >= TensorRole::kInputEmbedding && role <= TensorRole::kInputOutputNorm;
}

/// Returns true if a GGUF holds the second tensor of RecurrenceRules::gguf_joined.
bool holds_joined_inputs(const TensorArchive& archive, ModelFormat format, const ParsedConfig& parsed) {
  const RecurrenceRules* const rules = parsed.architecture->recurrence;
  if (format != ModelFormat::kGguf || rules == nullptr || rules->gguf_joined.empty()) return false;
  for (std::size_t layer = 0; layer < parsed.config.layers(); ++layer) {
    if (!parsed.config.layer[layer].has_recurrence()) continue;
    return find_any(archive, file_names(parsed, rules->gguf_joined[1], format, layer)) != nullptr;
  }
  return false;
}

/// Returns true if a GGUF holds W_k and W_v of a latent attention in one tensor.
bool holds_joined_heads(const TensorArchive& archive, std::size_t layer) {
  return archive.find(with_number("blk.{}.attn_kv_b.weight", layer)) != nullptr;
}

/// Returns the channels of a head in the tensors of the roles kQuery and kKey.
std::size_t rotating_channels(const ModelConfig& config) {
  const AttentionConfig& attention = config.first_attention();
  return attention.is_latent() ? attention.shared_key_dim() : attention.head_dim;
}

/// Refuses layers without experts in a family that has no other feed-forward block.
void check_sparse_layers(const TensorArchive& archive, const ParsedConfig& parsed) {
  if (!parsed.architecture->feed_forward_tensors.empty()) return;
  const std::vector<LayerConfig>& layers = parsed.config.layer;
  const auto dense = std::ranges::find_if(
      layers, [](const LayerConfig& layer) { return layer.has_feed_forward() && !layer.feed_forward.is_sparse(); });
  if (dense == layers.end()) return;
  throw Error(ErrorCode::kInput, archive.file_of(archive.tensors().front()).string(),
              "found no experts in layer " + std::to_string(dense - layers.begin()) +
                  ", expected experts in every layer of " + std::string(parsed.architecture->name));
}

}  // namespace

ModelTensors::ModelTensors(const TensorArchive& archive, ModelFormat format, ParsedConfig& parsed)
    : archive_(&archive),
      format_(format),
      norms_less_one_(format == ModelFormat::kHuggingFace && parsed.architecture->hf_norms_less_one),
      interleaving_((format == ModelFormat::kGguf ? parsed.architecture->gguf_interleaved : parsed.hf_interleaved)
                        ? Interleaving{rotating_channels(parsed.config), parsed.config.rotary_dim()}
                        : Interleaving{}),
      index_interleaving_(
          parsed.architecture->index_interleaved
              ? Interleaving{parsed.config.first_attention().latent.index.dim, parsed.config.rotary_dim()}
              : Interleaving{}),
      factors_(parsed.factors),
      expert_table_(archive, format, parsed),
      joined_inputs_(holds_joined_inputs(archive, format, parsed)),
      layers_(parsed.config.layers()) {
  if (format == ModelFormat::kHuggingFace) embedding_names_ = settle_head(archive, parsed);
  check_sparse_layers(archive, parsed);
  Missing missing{.whole_layers = layers_.size(), .names = {}};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if (layer == 0) find_all(parsed.architecture->model_tensors, layer, parsed, missing);
    for (const std::span<const TensorSpec> block : blocks_of(*parsed.architecture, parsed.config.layer[layer]))
      find_all(block, layer, parsed, missing);
    find_all(kRopeTensors, layer, parsed, missing);
  }
  if (!missing.names.empty()) fail_missing(missing);
  if (format == ModelFormat::kGguf) check_biases();
  if (format == ModelFormat::kHuggingFace && parsed.weights != nullptr && matrices_.empty())
    parsed.notes.emplace_back("no weight is quantised, in spite of the quantization_config");
  note_unused(parsed);
  parsed.notes.insert(parsed.notes.end(), archive.warnings().begin(), archive.warnings().end());
}

void ModelTensors::check_biases() const {
  for (std::size_t role = 0; role < kTensorRoles; ++role) {
    const auto lacks = [role](const Layer& layer) {
      return layer.tensors[role].weight != nullptr && layer.tensors[role].bias == nullptr;
    };
    const auto has = [role](const Layer& layer) { return layer.tensors[role].bias != nullptr; };
    const auto without = std::ranges::find_if(layers_, lacks), with = std::ranges::find_if(layers_, has);
    if (without == layers_.end() || with == layers_.end()) continue;
    throw Error(ErrorCode::kInput, place_of(*archive_, *without->tensors[role].weight),
                "found no bias, expected one as in layer " + std::to_string(with - layers_.begin()));
  }
}

void ModelTensors::fail_missing(const Missing& missing) const {
  const std::size_t count = missing.names.size();
  std::string text = std::to_string(count) + (count == 1 ? " tensor is missing: " : " tensors are missing: ") +
                     name_list(missing.names);
  text += other_beginning(*archive_, missing.names);
  if (missing.untied_head) text += "; tie_word_embeddings is false, so the head must be stored";
  if (missing.whole_layers < layers_.size()) {
    text += "; the config asks for " + std::to_string(layers_.size()) + " layers, the weights hold the first " +
            std::to_string(missing.whole_layers) + " whole";
  }
  throw Error(ErrorCode::kInput, archive_->file_of(archive_->tensors().front()).string(), text);
}

bool ModelTensors::needed(const TensorSpec& spec, std::size_t layer, const ParsedConfig& parsed) const noexcept {
  if (name_in(spec, format_).empty()) return false;
  const AttentionConfig& attention = parsed.config.layer[layer].attention;
  const bool normalises = parsed.config.arithmetic.qk_norm != QkNorm::kNone;
  if (is_shared(spec.role) && parsed.config.layer[layer].feed_forward.experts.shared_d_ff == 0) return false;
  if (spec.sequential_only && parsed.config.arithmetic.parallel_residual) return false;
  switch (spec.role) {
    case TensorRole::kQueryNorm:
      return normalises;
    case TensorRole::kKeyNorm:
      return normalises && !attention.kv_layer;
    case TensorRole::kKey:
      return !attention.kv_layer;
    case TensorRole::kValue:
      return !attention.kv_layer && !attention.one_row;
    case TensorRole::kQueryLatent:
    case TensorRole::kQueryLatentNorm:
      return attention.latent.query_rank > 0;
    case TensorRole::kPlainQuery:  // and the rotated channels in the same tensor
      return (spec.columns == TensorAxis::kQueryLatentRank) == (attention.latent.query_rank > 0);
    case TensorRole::kIndexQuery:
    case TensorRole::kIndexKey:
    case TensorRole::kIndexKeyNorm:
    case TensorRole::kIndexWeight:
      return !attention.latent.index.shared;
    case TensorRole::kLatentKeyMap:
    case TensorRole::kLatentKey:
    case TensorRole::kLatentValue:  // GGUF: two tensors of heads, or in old files one
      return format_ == ModelFormat::kHuggingFace || spec.hf.empty() != holds_joined_heads(*archive_, layer);
    case TensorRole::kStreamScale:
      return parsed.config.streams.scaled;
    case TensorRole::kMixerNorm:
      return parsed.config.layer[layer].recurrence.norm_channels > 0;
    case TensorRole::kRouterBias:
      return parsed.router_bias;
    case TensorRole::kLatentIn:
    case TensorRole::kLatentOut:
      return parsed.config.layer[layer].feed_forward.experts.latent > 0;
    case TensorRole::kHead:
      return !parsed.config.tied_head || spec.bias != BiasGroup::kNone;
    default:
      return !is_of_input(spec.role) || parsed.config.layer_inputs > 0;
  }
}

void ModelTensors::find_all(std::span<const TensorSpec> table, std::size_t layer, const ParsedConfig& parsed,
                            Missing& missing) {
  for (std::size_t begin = 0; begin < table.size();) {
    std::size_t end = begin + 1;
    while (end < table.size() && name_in(table[end], format_) == name_in(table[begin], format_)) ++end;
    const TensorSpec& spec = table[begin];
    if (is_of_stream(spec.role)) {
      if (layer == 0) find_streams(spec, parsed, missing);
    } else if (is_of_expert(spec.role)) {
      find_experts(table.subspan(begin, end - begin), layer, parsed, missing);
    } else if (holds_each(spec.hf)) {
      if (needed(spec, layer, parsed)) find_heads(spec, layer, parsed, missing);
    } else if ((spec.per_layer() || layer == 0) && needed(spec, layer, parsed)) {
      find(table.subspan(begin, end - begin), layer, parsed, missing);
    }
    begin = end;
  }
}

/// Returns the tensors of a layer's blocks.
std::vector<std::span<const TensorSpec>> ModelTensors::blocks_of(const Architecture& row,
                                                                 const LayerConfig& layer) const {
  std::vector<std::span<const TensorSpec>> blocks;
  if (layer.has_attention()) blocks.push_back(row.attention_tensors);
  if (layer.has_recurrence()) blocks.push_back(joined_inputs_ ? row.recurrence->gguf_joined : row.recurrence->tensors);
  if (!layer.feed_forward.is_sparse() && layer.has_feed_forward()) blocks.push_back(row.feed_forward_tensors);
  if (layer.feed_forward.is_sparse()) blocks.push_back(expert_table_.tensors());
  return blocks;
}

/// Returns true if the config requests a bias.
bool ModelTensors::biased(const TensorSpec& spec, const ParsedConfig& parsed) const noexcept {
  switch (spec.bias) {
    case BiasGroup::kAlways:
      return true;
    case BiasGroup::kAttention:
      return parsed.attention_bias;
    case BiasGroup::kOutput:
      return parsed.output_bias;
    case BiasGroup::kFeedForward:
      return parsed.mlp_bias;
    case BiasGroup::kConvolution:
      return parsed.convolution_bias;
    case BiasGroup::kNone:
      break;
  }
  return false;
}

/// Returns the rows of part `index`: stacked in the table's order, or head by head.
RowPart ModelTensors::part_of(Parts parts, std::size_t index, std::size_t layer, const ParsedConfig& parsed) const {
  const auto rows_of = [&](const TensorSpec& spec) { return extent_of(spec.rows, parsed.config, layer, format_).size; };
  const std::size_t rows = rows_of(parts[index]);
  const TensorAxis by = format_ == ModelFormat::kHuggingFace ? parts[index].hf_heads : parts[index].gguf_heads;
  const std::size_t heads = by == TensorAxis::kNone ? 1 : extent_of(by, parsed.config, layer, format_).size;
  std::size_t first = 0, all = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (part < index) first += rows_of(parts[part]) / heads;
    all += rows_of(parts[part]) / heads;
  }
  if (parts[index].alternating) return {.first = index, .rows = rows, .run = 1, .stride = parts.size()};
  return {.first = first, .rows = rows, .run = rows / heads, .stride = all};
}

const StoredTensor* ModelTensors::find_checked(Parts parts, std::span<const std::string> names, bool bias, bool stacked,
                                               std::size_t layer, const ParsedConfig& parsed) {
  for (const std::string& name : names) {
    std::unique_ptr<StoredMatrix> matrix =
        bias || parsed.weights == nullptr ? nullptr : parsed.weights->find(*archive_, name);
    const StoredTensor* tensor = matrix == nullptr ? archive_->find(name) : matrix->tensors().front();
    if (tensor == nullptr) continue;
    const std::vector<std::uint64_t>& shape = matrix == nullptr ? tensor->shape : matrix->shape();
    std::vector<TensorSpec> expected(parts.begin(), parts.end());
    if (matrix != nullptr && matrix->is_by_output())
      for (TensorSpec& each : expected) each.hf_transposed = false;
    check_shape(*archive_, *tensor, shape, expected, bias, stacked, parsed.config, layer, format_);
    if (matrix == nullptr) check_type(*archive_, *tensor, format_);
    names_.push_back(tensor->name);
    shapes_.push_back(shape);
    if (matrix != nullptr) matrices_[tensor] = std::move(matrix);
    return tensor;
  }
  return nullptr;
}

void ModelTensors::find(Parts parts, std::size_t layer, const ParsedConfig& parsed, Missing& missing) {
  const TensorSpec& spec = parts.front();
  const auto miss = [&](const std::string& name) {
    missing.names.push_back(name);
    if (spec.per_layer()) missing.whole_layers = std::min(missing.whole_layers, layer);
    missing.untied_head = missing.untied_head || spec.role == TensorRole::kHead;
  };
  std::vector<std::string> names = file_names(parsed, spec, format_, layer);
  if (spec.role == TensorRole::kEmbedding && format_ == ModelFormat::kHuggingFace) names = embedding_names_;
  const StoredTensor *weight = nullptr, *bias = nullptr;
  const bool tied = spec.role == TensorRole::kHead && parsed.config.tied_head;  // only a bias is the head's own
  if (!tied) weight = find_checked(parts, names, false, false, layer, parsed);
  const bool optional = spec.optional || (spec.gguf_optional && format_ == ModelFormat::kGguf);
  if (weight == nullptr && !optional && !tied) miss(names.front());
  const bool asked = biased(spec, parsed);
  if (asked || (spec.bias != BiasGroup::kNone && format_ == ModelFormat::kGguf)) {
    names = file_names(parsed, spec, format_, layer, true);
    bias = find_checked(parts, names, true, false, layer, parsed);
    if (bias == nullptr && asked) miss(names.front());
  }
  for (std::size_t index = 0; index < parts.size(); ++index) {
    layers_[layer].tensors[static_cast<std::size_t>(parts[index].role)] = {
        .weight = weight, .bias = bias, .part = part_of(parts, index, layer, parsed)};
  }
}

/// Finds tensors of the experts: one for each expert, or one that holds all experts.
void ModelTensors::find_experts(Parts parts, std::size_t layer, const ParsedConfig& parsed, Missing& missing) {
  const TensorSpec& spec = parts.front();
  const bool stacked = !holds_each(name_in(spec, format_));
  std::vector<std::array<Found, kExpertRoles>>& experts = layers_[layer].experts;
  experts.resize(parsed.config.layer[layer].feed_forward.experts.count);
  std::size_t rows = 0;  // of one expert
  for (const TensorSpec& part : parts) rows += extent_of(part.rows, parsed.config, layer, format_).size;
  const StoredTensor *weight = nullptr, *bias = nullptr;
  const auto find = [&](std::size_t expert, bool is_bias) {
    const std::vector<std::string> names = file_names(parsed, spec, format_, layer, is_bias, expert);
    const StoredTensor* found = find_checked(parts, names, is_bias, stacked, layer, parsed);
    if (found != nullptr) return found;
    missing.names.push_back(names.front());
    missing.whole_layers = std::min(missing.whole_layers, layer);
    return found;
  };
  for (std::size_t expert = 0; expert < experts.size(); ++expert) {
    if (!stacked || expert == 0) {
      weight = find(expert, false);
      if (spec.bias != BiasGroup::kNone) bias = find(expert, true);
    }
    const StoredMatrix* const matrix = weight == nullptr ? nullptr : matrix_of(*weight);
    const bool transposed =
        weight != nullptr && (matrix == nullptr || !matrix->is_by_output()) &&
        is_transposed(matrix == nullptr ? weight->shape : matrix->shape(), parts, parsed.config, layer, format_);
    for (std::size_t index = 0; index < parts.size(); ++index) {
      RowPart part = part_of(parts, index, layer, parsed);
      if (stacked && !transposed) part.first += expert * rows;
      if (transposed) {
        part.depth = extent_of(spec.columns, parsed.config, layer, format_).size;
        part.base = expert * part.depth;
      }
      experts[expert][static_cast<std::size_t>(parts[index].role) - kTensorRoles] = {
          .weight = weight, .bias = bias, .part = part, .bias_row = stacked ? expert : 0};
    }
  }
}

/// Finds a projection for each stream but the first; in GGUF one tensor holds all: [stream, d_model, d_model].
void ModelTensors::find_streams(const TensorSpec& spec, const ParsedConfig& parsed, Missing& missing) {
  const bool together = format_ == ModelFormat::kGguf;
  TensorSpec stored = spec;
  if (together) {
    stored.rows = TensorAxis::kOtherStreamRows;
    stored.by_head = TensorAxis::kOtherStreams;
  }
  std::vector<Found>& found = streams_[spec.role];
  const StoredTensor* weight = nullptr;
  for (std::size_t stream = 0; stream + 1 < parsed.config.streams.count; ++stream) {
    if (!together || stream == 0) {
      const std::vector<std::string> names = file_names(parsed, spec, format_, stream);
      weight = find_checked({&stored, 1}, names, false, false, 0, parsed);
      if (weight == nullptr) missing.names.push_back(names.front());
    }
    RowPart part = part_of({&spec, 1}, 0, 0, parsed);
    if (together) part.first = stream * part.rows;
    found.push_back({.weight = weight, .bias = nullptr, .part = part});
  }
}

/// Finds a vector of each head; in GGUF they are the rows of one matrix.
void ModelTensors::find_heads(const TensorSpec& spec, std::size_t layer, const ParsedConfig& parsed, Missing& missing) {
  const AttentionConfig& attention = parsed.config.layer[layer].attention;
  const bool queries = spec.role == TensorRole::kQueryNorm, together = format_ == ModelFormat::kGguf;
  const std::size_t tensors = together ? 1 : queries ? attention.query_heads : attention.kv_heads;
  TensorSpec each = spec;
  if (together) {
    each.rows = queries ? TensorAxis::kQueryHeads : TensorAxis::kKvHeads;
    each.columns = spec.rows;
  }
  Found& stored = layers_[layer].tensors[static_cast<std::size_t>(spec.role)];
  for (std::size_t head = 0; head < tensors; ++head) {
    const std::vector<std::string> names = file_names(parsed, spec, format_, layer, false, head);
    const StoredTensor* found = find_checked({&each, 1}, names, false, false, layer, parsed);
    if (found == nullptr) {
      missing.names.push_back(names.front());
      missing.whole_layers = std::min(missing.whole_layers, layer);
    }
    if (head == 0)
      stored.weight = found;
    else
      stored.other_heads.push_back(found);
  }
}

void ModelTensors::note_unused(ParsedConfig& parsed) const {
  std::vector<std::string> used = digest_names(), unused;
  std::vector<std::string_view> parts;  // that are not the language model's
  std::size_t skipped = 0;
  std::ranges::sort(used);
  for (const StoredTensor& tensor : archive_->tensors()) {
    // Old checkpoints store RoPE's frequencies, which follow from the config.
    if (tensor.name.ends_with("rotary_emb.inv_freq")) continue;
    if (std::ranges::binary_search(used, tensor.name)) continue;
    const std::string_view part = other_part(tensor.name, layers_.size());
    if (part.empty()) unused.push_back(tensor.name);
    if (!part.empty()) ++skipped;
    if (!part.empty() && std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  if (skipped > 0) parsed.notes.push_back(skipped_note(skipped, parts));
  if (unused.empty()) return;
  parsed.notes.push_back(std::to_string(unused.size()) + (unused.size() == 1 ? " tensor is" : " tensors are") +
                         " not used by the config: " + name_list(unused));
}

}  // namespace kvs::inline model
