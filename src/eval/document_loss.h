#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/decoder.h"

namespace kvs {

/// More than any loss that can be measured: that of settings whose passes leave the range of f32.
inline constexpr double kOverflowLoss = 1e100;
/// Of a mean over documents of which one or more had it.
constexpr bool overflows(double loss) noexcept { return loss > 1e-9 * kOverflowLoss; }
/// `measure()`, or kOverflowLoss where it meets NaN or infinity. Whatever else could be at fault, such as the model's
/// own pass, has been run before.
double loss_or_overflow(const std::function<double()>& measure);

/// The full cache's pass over a document, made when it is first asked for and kept: tokens · d_model floats.
class FullPass {
 public:
  /// @param tokens  which must outlive this
  FullPass(Decoder& decoder, std::span<const std::int32_t> tokens) : decoder_(&decoder), tokens_(tokens) {}

  Decoder& decoder() const noexcept { return *decoder_; }
  std::span<const std::int32_t> tokens() const noexcept { return tokens_; }
  const ResidualStream& finished();

 private:
  Decoder* decoder_;
  std::span<const std::int32_t> tokens_;
  std::optional<ResidualStream> finished_;
};

/// Losses of passes over one document: means over the tokens that have one before them and follow the prefix.
class DocumentLoss {
 public:
  /// @param tokens  which must outlive this
  /// @throws Error kData unless there are two or more after the prefix
  DocumentLoss(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix)
      : DocumentLoss(std::make_shared<FullPass>(decoder, tokens), prefix) {}
  /// @param full  may serve several losses
  DocumentLoss(std::shared_ptr<FullPass> full, std::size_t prefix);

  std::span<const std::int32_t> tokens() const noexcept { return full_->tokens(); }
  /// @param finished  a pass over all tokens
  double nll(const ResidualStream& finished) const;
  /// Standard error of nll(), over its tokens.
  double nll_error(const ResidualStream& finished) const;
  /// KL divergence, in nats, from the full cache's predictions. Its mean over texts like the model's own is what the
  /// NLL loses; it varies far less from document to document, since it does not depend on which token came.
  double divergence(const ResidualStream& finished);
  const ResidualStream& reference() { return full_->finished(); }

 private:
  double scored() const noexcept { return static_cast<double>(tokens().size() - 1 - prefix_); }
  /// [token] 0 of those that are not scored.
  std::vector<float> nll_of_tokens(const ResidualStream& finished) const;

  std::shared_ptr<FullPass> full_;
  std::size_t prefix_;
};

}  // namespace kvs
