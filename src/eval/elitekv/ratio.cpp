#include "eval/elitekv/ratio.h"

#include <algorithm>
#include <utility>

#include "core/interrupt.h"
#include "eval/elitekv/caches.h"
#include "eval/evaluation.h"
#include "model/cache_shape.h"
#include "policy/methods.h"

namespace kvs {
namespace {

using Documents = std::span<const std::vector<std::int32_t>>;

/// Mean NLL with a method at work in the config's layers.
double loss_with(const CacheMethod& method, Json settings, const EliteConfig& config, Decoder& decoder,
                 Documents documents) {
  const ModelConfig& model = decoder.model().config();
  settings["layers"] = config.layers;
  const auto make = [&] {
    Parameters parameters({{settings, "", ErrorCode::kInternal}}, model.layers);
    return make_cache(method, parameters, cache_shape(model));
  };
  return evaluate(decoder, documents, {.make = make}).sum.mean();
}

/// Parameters that stand for W_k and W_v of the config's layers: the elite rows and the factors.
std::size_t parameters_of(const EliteConfig& config, const ModelConfig& model) {
  std::size_t sum = 0;
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    sum += 2 * config.size_of(n).r * model.kv_heads * model.d_model;
    for (const EliteFactor& factor : elite_factors(config, n, model.kv_heads, model.head_dim))
      sum += factor.rank * (factor.rows + model.d_model);
  }
  return sum;
}

/// KV heads of a GQA model whose cache holds `values` for a token and layer: fewer, as many for each; 0: there is none.
std::size_t pooled_heads(std::size_t values, const ModelConfig& model) {
  const std::size_t head = 2 * model.head_dim, heads = values / head;
  return values % head == 0 && heads < model.kv_heads && model.kv_heads % heads == 0 ? heads : 0;
}

/// @param config  r, rank and how; its picks are found here
EliteTrial try_allocation(const FactorInput& input, Decoder& decoder, const EliteSearch& search, EliteConfig config,
                          Documents documents) {
  config.picks = search.picks(config.r);
  config.fitted_outputs = false;
  std::vector<EliteLayer> layers;
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    check_interrupt();
    if (!config.joint) add_shared_ranks(input, n, config);
    const std::vector<FactorTensor> tensors = factorise_layer(input, n, config);
    layers.push_back(elite_layer(config, n, input.source, reader_of(tensors)));
  }
  const Model& model = decoder.model();
  const EliteCaches caches(model.backend(), model.config(), layers, documents.front().size());
  const Evaluation evaluation = evaluate(decoder, documents, {.make = [&] { return caches.make(); }});
  std::vector<double> losses = evaluation.sum.per_document;
  for (double& loss : losses) loss *= static_cast<double>(losses.size()) / static_cast<double>(evaluation.sum.scored);
  return {.r = config.r,
          .d_ckv = *config.rank,
          .joint = config.joint,
          .parameters = parameters_of(config, model.config()),
          .nll = evaluation.sum.mean(),
          .losses = std::move(losses)};
}

}  // namespace

void choose_allocation(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       std::span<const EliteCandidate> candidates, Documents documents, EliteConfig& config,
                       const std::function<void(std::size_t)>& done) {
  const ModelConfig& model = input.source.config();
  const double nll_full = loss_with(kFullMethod, Json::object(), config, decoder, documents);
  const EliteShape shape{model.d_model, model.kv_heads, model.head_dim, model.chunks()};
  if (const std::size_t heads = pooled_heads(candidates.front().size.values(shape), model); heads > 0)
    config.gqa = {heads, loss_with(kGqaMethod, {{"heads", heads}}, config, decoder, documents)};
  for (const auto& [size, joint] : candidates) {
    done(config.trials.size());
    config.r = size.r;
    config.rank = size.d_ckv;
    config.joint = joint;
    config.trials.push_back(try_allocation(input, decoder, search, config, documents));
    config.trials.back().nll_full = nll_full;
  }
  const EliteTrial& best = *std::ranges::min_element(config.trials, {}, &EliteTrial::nll);
  config.r = best.r;
  config.rank = best.d_ckv;
  config.joint = best.joint;
}

}  // namespace kvs
