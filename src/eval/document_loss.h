// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "eval/perplexity.h"
#include "model/decoder.h"

namespace kvs::inline eval {

/// Larger than any measurable loss: the loss of settings whose passes overflow f32.
inline constexpr double kOverflowLoss = 1e100;
/// Returns true if a mean over documents includes kOverflowLoss.
constexpr bool overflows(double loss) noexcept { return loss > 1e-9 * kOverflowLoss; }
/// Returns `measure()`, or kOverflowLoss if it meets NaN or infinity. Other possible causes, such as the model's own
/// pass, must have been run before.
double loss_or_overflow(const std::function<double()>& measure);

/// The full cache's pass over a document, computed on first use and kept: tokens · d_model floats. Calls may run in
/// turns (turns/turns.h).
class FullPass {
 public:
  /// @param tokens  must outlive this
  FullPass(Decoder& decoder, std::span<const std::int32_t> tokens) : decoder_(&decoder), tokens_(tokens) {}

  Decoder& decoder() const noexcept { return *decoder_; }
  std::span<const std::int32_t> tokens() const noexcept { return tokens_; }
  const ResidualStream& finished();

 private:
  Decoder* decoder_;
  std::span<const std::int32_t> tokens_;
  std::optional<ResidualStream> finished_;
  bool runs_ = false;  // for a call that has given way
};

/// Losses of passes over one document: means over the tokens that have a previous token and follow the prefix.
class DocumentLoss {
 public:
  /// @param tokens  must outlive this
  /// @throws Error kData unless at least two tokens follow the prefix
  DocumentLoss(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix)
      : DocumentLoss(std::make_shared<FullPass>(decoder, tokens), prefix) {}
  /// @param full  may be shared by several losses
  DocumentLoss(std::shared_ptr<FullPass> full, std::size_t prefix);

  std::span<const std::int32_t> tokens() const noexcept { return full_->tokens(); }
  /// @param finished  a pass over all tokens
  double nll(const ResidualStream& finished) const;
  /// Standard error of nll(), over its tokens.
  double nll_error(const ResidualStream& finished) const;
  /// Returns the KL divergence, in nats, from the full cache's predictions. On texts like the model's own, its mean is
  /// the increase of NLL. It varies far less between documents, since it does not depend on the actual next token.
  double divergence(const ResidualStream& finished);
  const ResidualStream& reference() { return full_->finished(); }

 private:
  double scored() const noexcept { return static_cast<double>(tokens().size() - 1 - prefix_); }
  TokenSums sums_of(const ResidualStream& finished) const;

  std::shared_ptr<FullPass> full_;
  std::size_t prefix_;
};

}  // namespace kvs::inline eval
