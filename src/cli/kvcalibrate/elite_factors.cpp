#include "cli/kvcalibrate/elite_factors.h"

#include <algorithm>

namespace kvs {
namespace {

void append(LowRankFactors& factors, const std::string& up, const std::string& down, EliteFactors& all) {
  all.tensors.push_back({down, {factors.rank, factors.columns}, std::move(factors.down)});
  all.tensors.push_back({up, {factors.rows, factors.rank}, std::move(factors.up)});
}

}  // namespace

void factorise_layer(const ModelSource& source, std::size_t layer, const std::vector<std::vector<std::size_t>>& elite,
                     const EliteFactorPlan& plan, std::span<const double> second_moment, std::size_t tokens,
                     CalibrationOps& ops, EliteFactors& factors) {
  const ModelConfig& model = source.config();
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const auto whitening = second_moment.empty() ? std::vector<double>() : whitening_factor(ops, second_moment, tokens);
  std::vector<double> keys =
      unrotated_rows(source.projection(layer, 'k'), elite, model.head_dim, model.rotary_dim(), model.d_model);
  const std::vector<float> wv = source.projection(layer, 'v');
  if (plan.joint) {
    keys.insert(keys.end(), wv.begin(), wv.end());
    LowRankFactors joint = factorise(ops, keys, model.d_model, plan.rank, plan.split, whitening);
    factors.singular_values.push_back(joint.singular);
    append(joint, prefix + "up", prefix + "down", factors);
    return;
  }
  const std::vector<double> values(wv.begin(), wv.end());
  const auto singular_k = factorise(ops, keys, model.d_model, 0, plan.split, whitening).singular;
  const auto singular_v = factorise(ops, values, model.d_model, 0, plan.split, whitening).singular;
  const auto [rank_k, rank_v] = shared_ranks(singular_k, singular_v, plan.rank);
  LowRankFactors k = factorise(ops, keys, model.d_model, rank_k, plan.split, whitening);
  LowRankFactors v = factorise(ops, values, model.d_model, rank_v, plan.split, whitening);
  factors.singular_values.push_back({{"k", singular_k}, {"v", singular_v}});
  factors.ranks.push_back({rank_k, rank_v});
  append(k, prefix + "up_k", prefix + "down_k", factors);
  append(v, prefix + "up_v", prefix + "down_v", factors);
}

std::size_t full_rank(const ModelConfig& model, std::size_t r, bool joint) noexcept {
  const std::size_t keys = model.kv_heads * (model.head_dim - 2 * r), values = model.kv_heads * model.head_dim;
  return joint ? std::min(model.d_model, keys + values)
               : std::min(model.d_model, keys) + std::min(model.d_model, values);
}

}  // namespace kvs
