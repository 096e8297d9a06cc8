// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/layer_losses.h"

#include <algorithm>

#include "caches/document_cache.h"
#include "caches/full.h"
#include "model/cache_shape.h"
#include "model/passes_together.h"
#include "turns/turns.h"

namespace kvs::inline calibrate {

LayerLosses::LayerLosses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                         std::vector<std::size_t> layers, MakeLayer make, const Prefix& prefix, std::size_t positions)
    : decoder_(&decoder),
      layers_(std::move(layers)),
      make_(std::move(make)),
      prefix_(prefix),
      together_(documents.empty() ? 1 : passes_together(decoder.model(), documents.front().size())) {
  documents_.reserve(documents.size());
  for (const std::vector<std::int32_t>& tokens : documents) {
    Document& document = documents_.emplace_back(Document{{decoder, tokens, prefix.tokens}, {}});
    document.entering.resize(layers_.size());
    document.entering.front() = decoder.embed(tokens, 0, positions);
  }
  (void)of_each([&](Document& document) {
    decoder.advance(document.entering.front(), layers_.front());
    return 0.0;
  });
}

std::vector<double> LayerLosses::of_each(const std::function<double(Document&)>& measure) {
  std::vector<double> losses(documents_.size());
  run_in_groups(
      0, documents_.size(), together_, [&](std::size_t n) { losses[n] = measure(documents_[n]); }, [](std::size_t) {});
  return losses;
}

ResidualStream LayerLosses::run(Document& document, const LayerChoice& choice) {
  const LayerChoice& last = document.last;
  const auto differs = last.empty() ? last.begin() : std::ranges::mismatch(last, choice).in1;
  const std::size_t first = std::min(static_cast<std::size_t>(differs - last.begin()), layers_.size() - 1);
  document.last.clear();  // empty until all following streams are stored
  const ModelConfig& model = decoder_->model().config();
  const CacheShape shape = cache_shape(model);
  const auto make = [&](std::size_t layer) {
    const auto at = std::ranges::lower_bound(layers_, layer);
    const bool chooses = at != layers_.end() && *at == layer;
    const auto n = static_cast<std::size_t>(at - layers_.begin());
    const bool runs = n >= first || model.is_read(layer);  // itself, or a layer that reads its rows
    return chooses && runs ? make_(n, choice[n]) : make_full_cache(plain_types(shape.layers[layer]));
  };
  Cache cache = for_documents(make_layers(shape, make, prefix_));
  ResidualStream hidden = decoder_->repeat(document.entering[first], 1);
  for (std::size_t n = first + 1; n < layers_.size(); ++n) {
    decoder_->advance(hidden, layers_[n], nullptr, &cache);
    document.entering[n] = decoder_->repeat(hidden, 1);
  }
  decoder_->advance(hidden, decoder_->model().config().layers(), nullptr, &cache);
  document.last = choice;
  return hidden;
}

std::vector<double> LayerLosses::nll(const LayerChoice& choice) {
  return of_each([&](Document& document) { return document.loss.nll(run(document, choice)); });
}

std::vector<double> LayerLosses::divergence(const LayerChoice& choice) {
  return of_each([&](Document& document) { return document.loss.divergence(run(document, choice)); });
}

std::vector<double> LayerLosses::divergence_or_overflow(const LayerChoice& choice) {
  return of_each([&](Document& document) {
    return loss_or_overflow([&] { return document.loss.divergence(run(document, choice)); });
  });
}

double LayerLosses::divergence(const LayerChoice& choice, std::size_t document) {
  Document& one = documents_[document];
  return one.loss.divergence(run(one, choice));
}

}  // namespace kvs::inline calibrate
