#include "eval/elite_allocate.h"

#include <algorithm>

#include "core/interrupt.h"
#include "eval/elite_caches.h"
#include "eval/evaluation.h"

namespace kvs {
namespace {

/// @param config  r, rank and how; its picks are found here
EliteTrial try_allocation(const FactorInput& input, Decoder& decoder, const EliteSearch& search, EliteConfig config,
                          std::span<const std::vector<std::int32_t>> documents) {
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
  const Evaluation evaluation = evaluate(decoder, documents, {.make = [&] { return caches.make(); }, .compare = true});
  return {config.r, *config.rank, evaluation.sum.perplexity(), evaluation.full->sum.perplexity()};
}

}  // namespace

void hold_out(Corpus& corpus, std::size_t count) {
  std::vector<Document> fitted, held;
  const std::size_t documents = corpus.documents.size();
  for (std::size_t n = 0; n < documents; ++n)
    ((n + 1) * count / documents > n * count / documents ? held : fitted).push_back(std::move(corpus.documents[n]));
  std::ranges::move(held, std::back_inserter(fitted));
  corpus.documents = std::move(fitted);
}

void choose_allocation(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       std::span<const EliteAllocation> candidates,
                       std::span<const std::vector<std::int32_t>> documents, EliteConfig& config,
                       const std::function<void(std::size_t)>& done) {
  for (const EliteAllocation& candidate : candidates) {
    done(config.trials.size());
    config.r = candidate.r;
    config.rank = candidate.d_ckv;
    config.trials.push_back(try_allocation(input, decoder, search, config, documents));
  }
  const EliteTrial& best = *std::ranges::min_element(config.trials, {}, &EliteTrial::ppl);
  config.r = best.r;
  config.rank = best.d_ckv;
}

}  // namespace kvs
