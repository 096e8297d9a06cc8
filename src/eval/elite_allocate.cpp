#include "eval/elite_allocate.h"

#include <algorithm>

#include "core/interrupt.h"
#include "eval/elite_caches.h"
#include "eval/elite_factors.h"
#include "eval/evaluation.h"

namespace kvs {

EliteTrial try_allocation(const ModelSource& source, Decoder& decoder, const EliteSearch& search, std::size_t tokens,
                          CalibrationOps& ops, EliteConfig config,
                          std::span<const std::vector<std::int32_t>> documents) {
  config.picks = search.picks(config.r);
  config.fitted_outputs = false;
  std::vector<EliteLayer> layers;
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    check_interrupt();
    const std::vector<FactorTensor> tensors =
        factorise_layer(source, n, search.second_moment(n), tokens, search.attention(), ops, config);
    layers.push_back(elite_layer(config, n, source, reader_of(tensors)));
  }
  const Model& model = decoder.model();
  const EliteCaches caches(model.backend(), model.config(), layers, documents.front().size());
  const Evaluation evaluation = evaluate(decoder, documents, {.make = [&] { return caches.make(); }, .compare = true});
  return {config.r, *config.rank, evaluation.sum.perplexity(), evaluation.full->sum.perplexity()};
}

const EliteTrial& best_of(std::span<const EliteTrial> trials) {
  return *std::ranges::min_element(trials, {}, &EliteTrial::ppl);
}

}  // namespace kvs
