// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "caches/token_rows.h"

namespace kvs::inline calibrate {

/// Keys and values of consecutive tokens, stored as some chunks of their spectrum along the token axis, channel by
/// channel. The spectrum is that of a grid of M samples, of which the first N are tokens. Stored are the sums Σ_n x[n]
/// e^{−j2πbn/M} over the bins b of the chunks, N times FAEDKV's state: each token adds a term, and all tokens have the
/// same weight.
class TokenSpectrum {
 public:
  /// How a token is added to a full grid. kRebuild makes a grid of twice as many samples with the same chunks, filled
  /// with the tokens restored from the bins. kWrap adds it to the token M before it, at that position (FaedkvUpdate).
  enum class Full { kRebuild, kWrap };

  /// @param kept_k, kept_v  of chunks 0 … chunks − 1, ascending
  TokenSpectrum(std::size_t chunks, std::vector<std::size_t> kept_k, std::vector<std::size_t> kept_v)
      : chunks_(chunks), k_{std::move(kept_k)}, v_{std::move(kept_v)} {}

  std::size_t tokens() const noexcept { return tokens_; }    // N
  std::size_t samples() const noexcept { return samples_; }  // M, at least N
  KeySpectrum view() const noexcept { return {view_of(k_), view_of(v_), tokens_}; }
  /// A complex bin of a channel counts as 4 stored bytes.
  CacheBytes bytes() const noexcept;

  /// Transforms rows [1, kv_head, N, head_dim] as tokens 0 … N − 1 of a full grid. O(N log N) per channel.
  void assign(Backend& backend, const TokenRows::Part& rows) { transform(backend, rows, rows.k.view().extent(2)); }
  /// Adds one row of k and v. O(bins) per channel, unless the grid is full.
  void add(Backend& backend, BackendView<const float, 4> k, BackendView<const float, 4> v, std::size_t row, Full full);
  /// Returns the tokens restored from the bins. O(M log M) per channel.
  TokenRows::Part restored(Backend& backend) const;

 private:
  /// Keys or values.
  struct States {
    std::vector<std::size_t> kept;
    BackendTensor<std::uint32_t, 1> bins = {};
    BackendTensor<float, 4> sums = {};
  };

  BinGrid grid(const States& states) const noexcept { return {states.bins.view(), samples_}; }
  BinnedStates view_of(const States& states) const noexcept { return {states.sums.view(), grid(states)}; }
  void transform(Backend& backend, const TokenRows::Part& rows, std::size_t samples);

  std::size_t chunks_;
  std::size_t tokens_ = 0, samples_ = 0;
  std::size_t wrapped_ = 0;  // number of tokens added to the position of another one
  States k_, v_;
};

}  // namespace kvs::inline calibrate
