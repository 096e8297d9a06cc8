#include "eval/elite_factors.h"

#include <algorithm>

namespace kvs {

std::vector<OutputTensor> factorise_layer(const ModelSource& source, std::size_t n,
                                          std::span<const double> second_moment, std::size_t tokens,
                                          CalibrationOps& ops, EliteConfig& config) {
  const ModelConfig& model = source.config();
  const std::size_t layer = config.layers[n];
  const auto whitening = second_moment.empty() ? std::vector<double>() : whitening_factor(ops, second_moment, tokens);
  const auto factors_of = [&](const std::vector<double>& rows, std::size_t rank) {
    return factorise(ops, rows, model.d_model, rank, config.split, whitening);
  };
  std::vector<std::vector<std::size_t>> elite;
  for (const ElitePicks& head : config.picks[n]) elite.push_back(head.chunks);
  std::vector<double> keys =
      unrotated_rows(source.projection(layer, 'k'), elite, model.head_dim, model.rotary_dim(), model.d_model);
  const std::vector<float> wv = source.projection(layer, 'v');
  std::vector<LowRankFactors> pairs;
  if (config.joint) {
    keys.insert(keys.end(), wv.begin(), wv.end());
    pairs.push_back(factors_of(keys, *config.rank));
    config.singular_values.push_back({pairs.front().singular, {}, {}});
  } else {
    const std::vector<double> values(wv.begin(), wv.end());
    EliteSingularValues singular{{}, factors_of(keys, 0).singular, factors_of(values, 0).singular};
    config.ranks.push_back(shared_ranks(singular.k, singular.v, *config.rank));
    config.singular_values.push_back(std::move(singular));
    pairs.push_back(factors_of(keys, config.ranks.back().first));
    pairs.push_back(factors_of(values, config.ranks.back().second));
  }
  std::vector<OutputTensor> tensors;
  const std::vector<EliteFactor> names = elite_factors(config, n, model.kv_heads, model.head_dim);
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    LowRankFactors& factors = pairs[pair];
    tensors.push_back(held_tensor(names[pair].down, {factors.rank, factors.columns}, std::move(factors.down)));
    tensors.push_back(held_tensor(names[pair].up, {factors.rows, factors.rank}, std::move(factors.up)));
  }
  return tensors;
}

std::size_t full_rank(const ModelConfig& model, std::size_t r, bool joint) noexcept {
  const std::size_t keys = model.kv_heads * (model.head_dim - 2 * r), values = model.kv_heads * model.head_dim;
  return joint ? std::min(model.d_model, keys + values)
               : std::min(model.d_model, keys) + std::min(model.d_model, values);
}

}  // namespace kvs
