#include "eval/layer_losses.h"

#include <algorithm>
#include <numeric>

#include "eval/divergence.h"
#include "policy/full.h"

namespace kvs {

LayerLosses::LayerLosses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                         std::vector<std::size_t> layers, MakeLayer make)
    : decoder_(&decoder), layers_(std::move(layers)), make_(std::move(make)) {
  for (const std::vector<std::int32_t>& tokens : documents) {
    Document& document = documents_.emplace_back(Document{tokens, {}, {}});
    document.entering.resize(layers_.size());
    document.entering.front() = decoder.embed(tokens);
    decoder.advance(document.entering.front(), layers_.front());
  }
}

ResidualStream LayerLosses::run(Document& document, const LayerChoice& choice, std::size_t first) {
  std::vector<std::unique_ptr<LayerCache>> caches;
  for (std::size_t layer = 0; layer < decoder_->model().config().layers; ++layer) {
    const auto at = std::ranges::lower_bound(layers_, layer);
    const bool chooses = at != layers_.end() && *at == layer;
    const auto n = static_cast<std::size_t>(at - layers_.begin());
    caches.push_back(chooses && n >= first ? make_(n, choice[n]) : make_full_cache());
  }
  Cache cache(std::move(caches));
  ResidualStream hidden = decoder_->repeat(document.entering[first], 1);
  for (std::size_t n = first + 1; n < layers_.size(); ++n) {
    decoder_->advance(hidden, layers_[n], nullptr, &cache);
    document.entering[n] = decoder_->repeat(hidden, 1);
  }
  decoder_->advance(hidden, decoder_->model().config().layers, nullptr, &cache);
  return hidden;
}

std::vector<double> LayerLosses::measure(const LayerChoice& choice,
                                         const std::function<double(Document&, const ResidualStream&)>& loss) {
  const auto differs = last_.empty() ? last_.begin() : std::ranges::mismatch(last_, choice).in1;
  const std::size_t first = std::min(static_cast<std::size_t>(differs - last_.begin()), layers_.size() - 1);
  std::vector<double> losses;
  for (Document& document : documents_) losses.push_back(loss(document, run(document, choice, first)));
  last_ = choice;
  return losses;
}

std::vector<double> LayerLosses::nll(const LayerChoice& choice) {
  return measure(choice, [&](const Document& document, const ResidualStream& hidden) {
    std::vector<std::int32_t> targets(document.tokens.begin() + 1, document.tokens.end());
    targets.push_back(-1);
    const std::vector<float> nll = decoder_->nll(hidden, targets);
    return std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(document.tokens.size() - 1);
  });
}

std::vector<double> LayerLosses::divergence(const LayerChoice& choice) {
  return measure(choice, [&](Document& document, const ResidualStream& hidden) {
    if (!document.reference) {
      document.reference = decoder_->embed(document.tokens);
      decoder_->advance(*document.reference, decoder_->model().config().layers);
    }
    const std::size_t tokens = document.tokens.size();
    return kvs::divergence(*decoder_, *document.reference, hidden, {0, 0, tokens - 1}).kl /
           static_cast<double>(tokens - 1);
  });
}

}  // namespace kvs
