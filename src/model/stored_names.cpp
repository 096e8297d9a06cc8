// SPDX-License-Identifier: Apache-2.0
#include "model/stored_names.h"

#include <algorithm>

namespace kvs::inline model {

namespace {

const std::string kOwnPrefix = "model.";  // of every class of Transformers 5, whatever the published files have

const TensorSpec& spec_of(const Architecture& row, TensorRole role) {
  return *std::ranges::find(row.model_tensors, role, &TensorSpec::role);
}

bool same_values(const StoredTensor& one, const StoredTensor& other) {
  if (one.shape != other.shape) return false;
  if (one.type_name == other.type_name) return std::ranges::equal(one.bytes, other.bytes);
  if (one.type == nullptr || other.type == nullptr) return false;
  std::vector<float> left(one.columns()), right(one.columns());
  for (std::uint64_t row = 0; row < one.rows(); ++row) {
    read_rows(one, row, 1, left);
    read_rows(other, row, 1, right);
    if (left != right) return false;
  }
  return true;
}

}  // namespace

std::string_view name_in(const TensorSpec& spec, ModelFormat format) {
  return format == ModelFormat::kGguf ? spec.gguf : spec.hf;
}

std::vector<std::string> file_names(const ParsedConfig& parsed, const TensorSpec& spec, ModelFormat format,
                                    std::size_t layer, bool bias, std::size_t expert) {
  const auto numbered = [&](std::string_view name) { return with_number(with_number(name, layer), expert); };
  const std::string name = numbered(name_in(spec, format));
  std::vector<std::string> names;
  if (format != ModelFormat::kHuggingFace) {
    names.push_back(name);
  } else {
    const std::string_view embedding = spec_of(*parsed.architecture, TensorRole::kEmbedding).hf;
    const std::string prefix(embedding.substr(0, embedding.find('.') + 1));
    const bool prefixed = name.starts_with(prefix);
    if (parsed.composite || parsed.architecture->hf_composite_names) {
      if (prefixed) names.push_back(prefix + "language_model." + name.substr(prefix.size()));
      names.push_back("language_model." + name);
    }
    names.push_back(name);
    if (prefixed) names.push_back(name.substr(prefix.size()));
    if (prefixed && prefix != kOwnPrefix) names.push_back(kOwnPrefix + name.substr(prefix.size()));
    names.push_back(prefix + name);
  }
  const bool gguf = format == ModelFormat::kGguf;
  const std::string_view weight = gguf ? spec.gguf_ending : spec.hf_ending;
  for (std::string& each : names) each += !bias ? weight : gguf ? ".bias" : spec.hf_bias_ending;
  if (!gguf && !bias && !spec.hf_other.empty()) names.push_back(numbered(spec.hf_other));
  return names;
}

const StoredTensor* find_any(const TensorArchive& archive, std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (const StoredTensor* tensor = archive.find(name); tensor != nullptr) return tensor;
  }
  return nullptr;
}

std::vector<std::string> settle_head(const TensorArchive& archive, ParsedConfig& parsed) {
  const auto names_of = [&](TensorRole role) {
    return file_names(parsed, spec_of(*parsed.architecture, role), ModelFormat::kHuggingFace, 0);
  };
  std::vector<std::string> names = names_of(TensorRole::kEmbedding), heads = names_of(TensorRole::kHead);
  const StoredTensor *embedding = find_any(archive, names), *head = find_any(archive, heads);
  if (!parsed.config.tied_head || head == nullptr) return names;
  if (embedding == nullptr) return heads;
  const bool same = same_values(*embedding, *head);
  archive.release(embedding->bytes);
  archive.release(head->bytes);
  if (same) return names;
  parsed.config.tied_head = false;
  parsed.notes.push_back(archive.file_of(*head).string() + ": tie_word_embeddings is true, but " + head->name +
                         " differs from " + embedding->name + ", so it is the head, as in Transformers 5");
  return names;
}

}  // namespace kvs::inline model
