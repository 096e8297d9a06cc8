// SPDX-License-Identifier: Apache-2.0
#include "model/sparse_block.h"

#include <cmath>
#include <numeric>

namespace kvs::inline model {

void SparseBlock::add(const Operand& x, const Operand& routed, const ExpertWeights& weights,
                      const ExpertsConfig& experts, Activation activation, const BackendView<float, 2>& sum) {
  const std::vector<ExpertTokens> chosen = route(experts, logits(routed, *weights.router), weights.router_bias);
  if (weights.latent_in != nullptr)
    add_latent(x, chosen, weights, experts, activation, sum);
  else
    add_chosen(x, chosen, weights, experts, activation, sum);
  if (weights.shared.down != nullptr) add_shared(x, weights, activation, sum);
}

/// Adds the weighted outputs of the tokens' experts.
void SparseBlock::add_chosen(const Operand& x, std::span<const ExpertTokens> chosen, const ExpertWeights& weights,
                             const ExpertsConfig& experts, Activation activation, const BackendView<float, 2>& sum) {
  for (std::size_t expert = 0; expert < chosen.size(); ++expert) {
    const ExpertTokens& tokens = chosen[expert];
    if (tokens.rows.empty()) continue;
    const BackendView<float, 2> gathered = gathered_.matrix(tokens.rows.size(), x.columns);
    backend_->gather(x, tokens.rows, 1, gathered);
    if (experts.scaled_inputs)
      backend_->scale_tokens(gathered.reshape<4>({1, 1, gathered.extent(0), x.columns}), tokens.weights);
    const Operand mine = x_.operand(tokens.rows.size(), x.columns);
    backend_->narrow(gathered, mine);
    const BackendView<float, 2> yielded = run(mine, weights.experts[expert], activation, experts.clamp);
    const std::vector<float> ones(experts.scaled_inputs ? tokens.rows.size() : 0, 1.0F);
    backend_->add_rows(yielded, tokens.rows, experts.scaled_inputs ? ones : tokens.weights, sum);
  }
}

/// Like add_chosen(), with experts that read and write fewer channels.
void SparseBlock::add_latent(const Operand& x, std::span<const ExpertTokens> chosen, const ExpertWeights& weights,
                             const ExpertsConfig& experts, Activation activation, const BackendView<float, 2>& sum) {
  const std::size_t latent = weights.latent_in->rows();
  const BackendView<float, 2> rows = latent_.matrix(x.rows, latent);
  const Operand narrow = latent_x_.operand(x.rows, latent);
  backend_->linear(x, *weights.latent_in, rows, false);
  backend_->narrow(rows, narrow);
  backend_->clear(rows);
  add_chosen(narrow, chosen, weights, experts, activation, rows);
  backend_->narrow(rows, narrow);
  backend_->linear(narrow, *weights.latent_out, sum, true);
}

BackendView<float, 2> SparseBlock::run(const Operand& x, const MlpWeights& mlp, Activation activation,
                                       const SwigluClamp& clamp) {
  const Operand activated = activated_.operand(x.rows, mlp.down->columns());
  if (clamp.limit > 0)
    backend_->clamped_up_projection(x, *mlp.gate_up, clamp, activated);
  else
    backend_->up_projection(x, *mlp.gate_up, activation, activated);
  const BackendView<float, 2> out = out_.matrix(x.rows, mlp.down->rows());
  backend_->linear(activated, *mlp.down, out, false);
  return out;
}

std::vector<float> SparseBlock::logits(const Operand& x, const Weight& weight) {
  const BackendView<float, 2> out = out_.matrix(x.rows, weight.rows());
  backend_->linear(x, weight, out, false);
  return download(*backend_, out);
}

void SparseBlock::add_shared(const Operand& x, const ExpertWeights& weights, Activation activation,
                             const BackendView<float, 2>& sum) {
  std::vector<float> scales(x.rows, 1.0F);
  if (weights.shared_scale != nullptr) {
    scales = logits(x, *weights.shared_scale);
    for (float& scale : scales) scale = 1 / (1 + std::exp(-scale));
  }
  std::vector<std::int32_t> rows(x.rows);
  std::iota(rows.begin(), rows.end(), 0);
  backend_->add_rows(run(x, weights.shared, activation), rows, scales, sum);
}

}  // namespace kvs::inline model
