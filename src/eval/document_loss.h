#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/decoder.h"

namespace kvs {

/// Losses of passes over one document: means over the tokens that have one before them and follow the prefix.
class DocumentLoss {
 public:
  /// @param tokens  which must outlive this
  /// @throws Error kData unless there are two or more after the prefix
  DocumentLoss(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix);

  std::span<const std::int32_t> tokens() const noexcept { return tokens_; }
  /// @param finished  a pass over all tokens
  double nll(const ResidualStream& finished) const;
  /// KL divergence, in nats, from the full cache's predictions. Its mean over texts like the model's own is what the
  /// NLL loses; it varies far less from document to document, since it does not depend on which token came.
  double divergence(const ResidualStream& finished);
  /// The full cache's pass, which is made once and kept: tokens · d_model floats.
  const ResidualStream& reference();

 private:
  double scored() const noexcept { return static_cast<double>(tokens_.size() - 1 - prefix_); }

  Decoder* decoder_;
  std::span<const std::int32_t> tokens_;
  std::size_t prefix_;
  std::optional<ResidualStream> reference_;
};

}  // namespace kvs
