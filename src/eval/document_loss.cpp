// SPDX-License-Identifier: Apache-2.0
#include "eval/document_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"
#include "turns/turns.h"

namespace kvs::inline eval {

double loss_or_overflow(const std::function<double()>& measure) {
  try {
    const double loss = measure();
    return std::isfinite(loss) ? std::min(loss, kOverflowLoss) : kOverflowLoss;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    return kOverflowLoss;
  }
}

const ResidualStream& FullPass::finished() {
  wait_until([this] { return !runs_; });
  if (finished_) return *finished_;
  runs_ = true;
  try {
    ResidualStream hidden = decoder_->embed(tokens_);
    decoder_->advance(hidden, decoder_->model().config().layers());
    finished_ = std::move(hidden);
  } catch (...) {
    runs_ = false;
    throw;
  }
  runs_ = false;
  return *finished_;
}

DocumentLoss::DocumentLoss(std::shared_ptr<FullPass> full, std::size_t prefix)
    : full_(std::move(full)), prefix_(prefix) {
  if (prefix + 1 >= tokens().size())
    throw Error(ErrorCode::kData, "prefix",
                "found a prefix of " + std::to_string(prefix) + " tokens in documents of " +
                    std::to_string(tokens().size()) + ", expected at least two tokens after it");
}

TokenSums DocumentLoss::sums_of(const ResidualStream& finished) const {
  std::vector<std::int32_t> targets(tokens().size(), -1);
  for (std::size_t t = prefix_; t + 1 < tokens().size(); ++t) targets[t] = tokens()[t + 1];
  TokenSums sums;
  sums.add(full_->decoder().nll(finished, targets));
  return sums;
}

double DocumentLoss::nll(const ResidualStream& finished) const { return sums_of(finished).nll / scored(); }

double DocumentLoss::nll_error(const ResidualStream& finished) const {
  const TokenSums sums = sums_of(finished);
  return standard_error(std::array{sums.nll}, static_cast<std::size_t>(scored()), sums.squares);
}

double DocumentLoss::divergence(const ResidualStream& finished) {
  double kl = 0;
  for (const TokenDivergence& one :
       token_divergences(full_->decoder(), reference(), finished, {0, prefix_, tokens().size() - 1}))
    kl += one.kl;
  return kl / scored();
}

}  // namespace kvs::inline eval
