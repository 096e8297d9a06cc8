// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/ratio.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "calibrate/elitekv/caches.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "eval/evaluation.h"
#include "model/cache_shape.h"

namespace kvs::inline calibrate {
namespace {

using Documents = std::span<const std::vector<std::int32_t>>;

/// Returns the NLL with a method in the config's layers.
PerplexitySum loss_with(const Method& method, Json settings, const EliteConfig& config, Decoder& decoder,
                        Documents documents) {
  const ModelConfig& model = decoder.model().config();
  settings["layers"] = config.layers;
  const auto make = [&] {
    const CacheShape shape = cache_shape(model);
    Parameters parameters({{settings, "", ErrorCode::kInternal}}, shape);
    return make_cache(method, parameters, shape);
  };
  return evaluate(decoder, documents, {.make = make}).sum;
}

/// Returns the number of parameters that replace W_k and W_v of the config's layers: the elite rows and the factors.
std::size_t parameters_of(const EliteConfig& config, const ModelConfig& model) {
  std::size_t sum = 0;
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    sum += 2 * config.size_of(n).r * model.kv_heads() * model.d_model;
    for (const EliteFactor& factor : elite_factors(config, n, model.kv_heads(), model.head_dim()))
      sum += factor.rank * (factor.rows + model.d_model);
  }
  return sum;
}

/// Returns the number of KV heads of a GQA model whose cache has `values` per token and layer (fewer heads, in equal
/// groups); 0: there is none.
std::size_t pooled_heads(std::size_t values, const ModelConfig& model) {
  const std::size_t head = 2 * model.head_dim(), heads = values / head;
  return values % head == 0 && heads < model.kv_heads() && model.kv_heads() % heads == 0 ? heads : 0;
}

/// Returns the result of passes; nullopt if one met NaN or infinity.
std::optional<PerplexitySum> finite_sum(const std::function<PerplexitySum()>& run) {
  try {
    PerplexitySum sum = run();
    if (std::isfinite(sum.mean())) return sum;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
  }
  return std::nullopt;
}

/// @param config  r, rank and options; its picks are determined here
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
  EliteTrial trial{
      .r = config.r, .d_ckv = *config.rank, .joint = config.joint, .parameters = parameters_of(config, model.config())};
  measure_trial(trial, [&] {
    const EliteCaches caches(model.backend(), model.config(), layers, documents.front().size());
    return evaluate(decoder, documents, {.make = [&] { return caches.make(); }}).sum;
  });
  return trial;
}

/// Measures the GQA model whose cache has `values` per token and layer, if there is one.
std::optional<GqaTrial> try_gqa(std::size_t values, const EliteConfig& config, Decoder& decoder, Documents documents) {
  const std::size_t heads = pooled_heads(values, decoder.model().config());
  if (heads == 0) return std::nullopt;
  GqaTrial trial{heads, std::numeric_limits<double>::infinity()};
  if (const auto sum = finite_sum([&] {
        return loss_with(kGqaMethod, {{"heads", heads}}, config, decoder, documents);
      })) {
    trial.nll = sum->mean();
    trial.nll_error = sum->error();
  }
  return trial;
}

}  // namespace

void measure_trial(EliteTrial& trial, const std::function<PerplexitySum()>& run) {
  trial.nll = std::numeric_limits<double>::infinity();
  const auto sum = finite_sum(run);
  if (!sum) return;
  trial.nll = sum->mean();
  trial.nll_error = sum->error();
  trial.losses = sum->per_document;
  const auto documents = static_cast<double>(trial.losses.size());
  for (double& loss : trial.losses) loss *= documents / static_cast<double>(sum->scored);
}

void choose_allocation(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       std::span<const EliteCandidate> candidates, Documents documents, EliteConfig& config,
                       const std::function<void(std::size_t)>& done) {
  const ModelConfig& model = input.source.config();
  const double nll_full = loss_with(kFullMethod, Json::object(), config, decoder, documents).mean();
  const EliteShape shape{model.d_model, model.kv_heads(), model.head_dim(), model.chunks()};
  config.gqa = try_gqa(candidates.front().size.values(shape), config, decoder, documents);
  for (const auto& [size, joint] : candidates) {
    done(config.trials.size());
    config.r = size.r;
    config.rank = size.d_ckv;
    config.joint = joint;
    config.trials.push_back(try_allocation(input, decoder, search, config, documents));
    config.trials.back().nll_full = nll_full;
  }
  const EliteTrial& best = best_trial(config);
  config.r = best.r;
  config.rank = best.d_ckv;
  config.joint = best.joint;
}

}  // namespace kvs::inline calibrate
