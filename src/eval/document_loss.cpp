#include "eval/document_loss.h"

#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "eval/divergence.h"

namespace kvs {

DocumentLoss::DocumentLoss(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix)
    : decoder_(&decoder), tokens_(tokens), prefix_(prefix) {
  if (prefix + 1 >= tokens.size())
    throw Error(ErrorCode::kData, "prefix",
                "found a prefix of " + std::to_string(prefix) + " tokens in documents of " +
                    std::to_string(tokens.size()) + ", expected at least two tokens after it");
}

double DocumentLoss::nll(const ResidualStream& finished) const {
  std::vector<std::int32_t> targets(tokens_.size(), -1);
  for (std::size_t t = prefix_; t + 1 < tokens_.size(); ++t) targets[t] = tokens_[t + 1];
  const std::vector<float> nll = decoder_->nll(finished, targets);
  return std::accumulate(nll.begin(), nll.end(), 0.0) / scored();
}

double DocumentLoss::divergence(const ResidualStream& finished) {
  return kvs::divergence(*decoder_, reference(), finished, {0, prefix_, tokens_.size() - 1}).kl / scored();
}

const ResidualStream& DocumentLoss::reference() {
  if (!reference_) {
    reference_ = decoder_->embed(tokens_);
    decoder_->advance(*reference_, decoder_->model().config().layers);
  }
  return *reference_;
}

}  // namespace kvs
