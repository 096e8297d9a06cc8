// SPDX-License-Identifier: Apache-2.0
#include "model/layer_inputs.h"

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace kvs::inline model {

LayerInputs::LayerInputs(const ModelTensors& tensors, const ModelConfig& config, Backend& backend)
    : backend_(&backend),
      layers_(config.layers()),
      width_(config.layer_inputs),
      epsilon_(config.norm_epsilon),
      first_for_others_(config.layer_input_for_others),
      table_(tensors.rows(TensorRole::kInputEmbedding)),
      gain_(backend, {config.layer_inputs}) {
  const TensorRows rows = tensors.rows(TensorRole::kInputProjection);
  const float factor = 1 / std::sqrt(static_cast<float>(config.d_model));
  const auto read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    rows.read(first, count, out);
    for (float& value : out) value *= factor;
  };
  projection_ = backend.make_weight({.rows = rows.rows(), .columns = rows.columns(), .read = read, .bias = {}});
  const std::vector<float> gain = tensors.vector(TensorRole::kInputProjectionNorm);
  backend.upload(gain_.view().data(), gain.data(), gain_.bytes());
}

std::shared_ptr<const BackendTensor<float, 3>> LayerInputs::of(std::span<const std::int32_t> tokens,
                                                               BackendView<const float, 2> embedded) const {
  const std::vector<float> a = looked_up(tokens), b = projected(embedded);
  const float scale = std::sqrt(static_cast<float>(width_)), half = 1 / std::numbers::sqrt2_v<float>;
  std::vector<float> parts(a.size());
  for (std::size_t token = 0; token < tokens.size(); ++token)
    for (std::size_t layer = 0; layer < layers_; ++layer)
      for (std::size_t i = 0; i < width_; ++i) {
        const std::size_t from = (token * layers_ + layer) * width_ + i;
        parts[(layer * tokens.size() + token) * width_ + i] = (a[from] * scale + b[from]) * half;
      }
  auto inputs = std::make_shared<BackendTensor<float, 3>>(*backend_, std::array{layers_, tokens.size(), width_});
  backend_->upload(inputs->view().data(), parts.data(), inputs->bytes());
  return inputs;
}

/// Returns the second embeddings, [token, layer, width].
std::vector<float> LayerInputs::looked_up(std::span<const std::int32_t> tokens) const {
  std::vector<float> rows(tokens.size() * layers_ * width_);
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    const bool beyond = first_for_others_ && static_cast<std::size_t>(tokens[token]) >= table_.rows();
    const std::int32_t id = beyond ? 0 : tokens[token];
    if (id < 0 || static_cast<std::size_t>(id) >= table_.rows())
      throw Error(ErrorCode::kInput, "token " + std::to_string(token),
                  "found id " + std::to_string(id) + ", expected one below the " + std::to_string(table_.rows()) +
                      " of the layers' inputs");
    table_.read(static_cast<std::size_t>(id), 1, std::span(rows).subspan(token * layers_ * width_, layers_ * width_));
  }
  return rows;
}

/// Returns the projections of the first embeddings, normalised layer by layer: [token, layer, width].
std::vector<float> LayerInputs::projected(BackendView<const float, 2> embedded) const {
  const std::size_t tokens = embedded.extent(0);
  const OperandBuffer x(*backend_, tokens, embedded.extent(1));
  backend_->narrow(embedded, x.get());
  const BackendTensor<float, 4> rows(*backend_, {tokens, layers_, 1, width_});
  backend_->linear(x.get(), *projection_, {rows.view().span(), {tokens, layers_ * width_}}, false);
  backend_->norm_heads(rows.view(), gain_.view(), epsilon_);
  return download(*backend_, rows.view());
}

}  // namespace kvs::inline model
