#include "model/sparse_block.h"

#include <cmath>
#include <numeric>

#include "model/routing.h"

namespace kvs::inline model {

void SparseBlock::add(const Operand& x, const Operand& routed, const ExpertWeights& weights,
                      const ExpertsConfig& experts, Activation activation, const BackendView<float, 2>& sum) {
  const std::vector<ExpertTokens> chosen = route(experts, logits(routed, *weights.router), weights.router_bias);
  for (std::size_t expert = 0; expert < chosen.size(); ++expert) {
    const ExpertTokens& tokens = chosen[expert];
    if (tokens.rows.empty()) continue;
    const BackendView<float, 2> gathered = gathered_.matrix(tokens.rows.size(), x.columns);
    backend_->gather(x, tokens.rows, 1, gathered);
    const Operand mine = x_.operand(tokens.rows.size(), x.columns);
    backend_->narrow(gathered, mine);
    backend_->add_rows(run(mine, weights.experts[expert], activation, experts.clamp), tokens.rows, tokens.weights, sum);
  }
  if (weights.shared.down != nullptr) add_shared(x, weights, activation, sum);
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
