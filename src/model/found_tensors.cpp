// SPDX-License-Identifier: Apache-2.0
// The tensors that ModelTensors has found: which one a role names, and the values of vectors.
#include <algorithm>
#include <cmath>

#include "model/model_tensors.h"

namespace kvs::inline model {
namespace {

bool is_norm(TensorRole role) {
  switch (role) {
    case TensorRole::kFinalNorm:
    case TensorRole::kAttentionNorm:
    case TensorRole::kQueryNorm:
    case TensorRole::kKeyNorm:
    case TensorRole::kAttentionOutputNorm:
    case TensorRole::kFeedForwardNorm:
    case TensorRole::kFeedForwardOutputNorm:
    case TensorRole::kDenseOutputNorm:
    case TensorRole::kExpertsInputNorm:
    case TensorRole::kExpertsOutputNorm:
      return true;
    default:
      return false;
  }
}

/// All values of a stored vector, or of a row of a matrix.
std::vector<float> read_vector(const TensorArchive& archive, const StoredTensor& tensor, std::size_t row = 0) {
  std::vector<float> values(static_cast<std::size_t>(tensor.columns()));
  TensorRows(archive, tensor, {}, {.first = row, .rows = 1, .run = 1, .stride = 1}).read(0, 1, values);
  return values;
}

}  // namespace

const ModelTensors::Found& ModelTensors::found(TensorRole role, std::size_t layer, std::size_t expert) const {
  if (is_of_stream(role)) return streams_.at(role).at(expert);
  const Layer& tensors = layers_.at(layer);
  const auto index = static_cast<std::size_t>(role);
  return is_of_expert(role) ? tensors.experts.at(expert)[index - kTensorRoles] : tensors.tensors[index];
}

Interleaving ModelTensors::interleaving(TensorRole role) const noexcept {
  if (role == TensorRole::kIndexQuery || role == TensorRole::kIndexKey || role == TensorRole::kIndexKeyNorm)
    return index_interleaving_;
  return role == TensorRole::kQuery || role == TensorRole::kKey ? interleaving_ : Interleaving{};
}

TensorRows ModelTensors::rows(TensorRole role, std::size_t layer, std::size_t expert) const {
  const Found& stored = found(role, layer, expert);
  return TensorRows(*archive_, *stored.weight, interleaving(role), stored.part, matrix_of(*stored.weight),
                    factor_of(role));
}

float ModelTensors::factor_of(TensorRole role) const {
  const auto factor = factors_.find(role);
  return factor == factors_.end() ? 1.0F : factor->second;
}

const StoredMatrix* ModelTensors::matrix_of(const StoredTensor& tensor) const {
  const auto matrix = matrices_.find(&tensor);
  return matrix == matrices_.end() ? nullptr : matrix->second.get();
}

std::vector<std::string> ModelTensors::digest_names() const {
  std::vector<std::string> names = names_;
  for (const auto& [values, matrix] : matrices_)
    for (const StoredTensor* tensor : matrix->tensors()) names.push_back(tensor->name);
  return names;
}

std::vector<float> ModelTensors::vector(TensorRole role, std::size_t layer) const {
  const Found& stored = found(role, layer);
  std::vector<float> values = read_vector(*archive_, *stored.weight);
  for (std::size_t row = 1; row < static_cast<std::size_t>(stored.weight->rows()); ++row) {
    const std::vector<float> more = read_vector(*archive_, *stored.weight, row);
    values.insert(values.end(), more.begin(), more.end());
  }
  for (const StoredTensor* head : stored.other_heads) {
    const std::vector<float> more = read_vector(*archive_, *head);
    values.insert(values.end(), more.begin(), more.end());
  }
  if (norms_less_one_ && is_norm(role)) {
    for (float& value : values) value += 1.0F;
  }
  if (const Interleaving order = interleaving(role);
      order.head_dim == values.size() && role == TensorRole::kIndexKeyNorm) {
    std::vector<float> ordered(values.size());
    for (std::size_t row = 0; row < ordered.size(); ++row) ordered[row] = values[interleaved_row(row, order)];
    values = std::move(ordered);
  }
  if (role == TensorRole::kMixerDecay && format_ == ModelFormat::kHuggingFace) {  // stored as the decay's logarithm
    for (float& value : values) value = -std::exp(value);
  }
  return values;
}

std::vector<float> ModelTensors::bias(TensorRole role, std::size_t layer, std::size_t expert) const {
  const Found& stored = found(role, layer, expert);
  if (stored.bias == nullptr) return {};
  const std::vector<float> values = read_vector(*archive_, *stored.bias, stored.bias_row);
  const Interleaving order = interleaving(role);
  std::vector<float> ordered(stored.part.rows);
  for (std::size_t row = 0; row < ordered.size(); ++row) {
    // In a tensor of all experts, `values` are those of one expert.
    ordered[row] = factor_of(role) *
                   values[stored.part.stored(order.head_dim == 0 ? row : interleaved_row(row, order)) % values.size()];
  }
  return ordered;
}

}  // namespace kvs::inline model
