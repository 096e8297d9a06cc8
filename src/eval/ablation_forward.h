// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/spectral_ops.h"
#include "model/decoder.h"

namespace kvs::inline eval {

/// Where and how the states of one layer are filtered.
struct AblationSetup {
  bool continuation = true;           // false: in-place
  std::size_t tokens = 0;             // per document
  std::size_t prefix = 0;             // continuation: tokens [0, prefix) are filtered, the rest scored
  std::size_t sinks = 0, recent = 0;  // tokens at both ends of the filtered range that are not filtered
  Transform transform = Transform::kDft;
  bool before_rope = false;  // key space k_pre instead of k_post

  std::size_t first_filtered() const noexcept { return sinks; }
  std::size_t last_filtered() const noexcept { return (continuation ? prefix : tokens) - recent; }
  std::size_t filtered() const noexcept { return last_filtered() - first_filtered(); }
  std::size_t first_scored() const noexcept { return continuation ? prefix : 0; }  // position of the first scored row
  /// Number of tokens whose NLL counts: continuation T − P − 1, in-place T − 1.
  std::size_t scored() const noexcept { return tokens - first_scored() - 1; }
  /// "continuation, k_pre, DCT", for headings.
  std::string subject() const;
};

/// The forward passes of a FAEDKV ablation of one document. No computation is repeated: the prefix is prefilled once,
/// the layers below the ablated one run once, and variants of a layer share one batch above it. Source: FAEDKV, section
/// on frequency ablation; docs/faedkv.md describes both protocols.
class AblationForward {
 public:
  /// @param batch_rows  maximum number of rows (members · tokens) in a batch of variants
  AblationForward(Decoder& decoder, SpectralOps& ops, const AblationSetup& setup, std::size_t batch_rows = 4096);
  ~AblationForward();
  /// Returns the passes of a further document, which may run in turns with these (turns/turns.h).
  AblationForward another() const { return AblationForward(*decoder_, *ops_, setup_, batch_rows_); }
  /// Returns the number of documents whose passes run in turns.
  std::size_t together() const;

  /// Starts a document of setup.tokens tokens.
  void begin(std::span<const std::int32_t> tokens);
  /// Returns NLL sums [variant] over the scored tokens, with K and V of `layer` filtered by each row of gains [variant,
  /// bin]. Layers must be requested in ascending order.
  std::vector<double> variants(std::size_t layer, TensorView<const double, 2> gains);
  /// Returns the NLL sum of the unchanged model. Ends the document.
  /// @param squares  receives the sum of the tokens' squares
  double base(std::vector<double>* squares = nullptr);
  /// Returns NLL sums [variant] with every layer of `layers` (ascending) filtered (calibrated models). Restarts the
  /// document.
  /// @param gains    [variant, (keys, values), layer, bin]; layer: index in `layers`
  /// @param squares  receives the sum of the tokens' squares of each variant
  std::vector<double> filtered(std::span<const std::size_t> layers, TensorView<const double, 4> gains,
                               std::vector<double>* squares = nullptr);

 private:
  struct Prefix;
  class FilterHook;
  struct LayerGains;
  void finish(ResidualStream& members);
  void advance_filtered(ResidualStream& members, std::size_t layer, const LayerGains& gains, bool alike);
  std::size_t batch_members() const;
  /// Adds the sums of each member to `sums` and `squares`, if given. @return the sum of the last member
  double sum_nll(const ResidualStream& hidden, std::vector<double>* sums, std::vector<double>* squares = nullptr);
  void restart();
  Cache* cache();

  Decoder* decoder_;
  SpectralOps* ops_;
  AblationSetup setup_;
  std::size_t batch_rows_;
  std::vector<std::int32_t> tokens_, targets_;
  ResidualStream hidden_;
  std::unique_ptr<Prefix> prefix_;
};

}  // namespace kvs::inline eval
