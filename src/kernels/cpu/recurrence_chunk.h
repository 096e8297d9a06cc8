// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kvs::cpu {

struct RecurrenceShape {
  std::size_t key_dim = 0, value_dim = 0;
  bool delta = false;  // RecurrenceInput
};

/// Up to RecurrenceChunk::kTokens tokens of one value head.
struct RecurrenceTokens {
  std::size_t count = 0;
  const float* values = nullptr;  // [token, value_dim], rows value_stride apart
  std::size_t value_stride = 0;
  float skip = 0;
  float* out = nullptr;  // [token, value_dim], rows out_stride apart
  std::size_t out_stride = 0;
};

/// One head of a linear recurrence, a chunk of tokens at a time. With g the decay summed from the chunk's first token,
/// and S0 the state before the chunk, the written rows w solve
///   (I + A) W = B (V − e^g K S0),  A[t, s] = beta[t] · e^(g[t] − g[s]) · k[t]·k[s] for s < t,
/// and o[t] = e^g[t] S0ᵀ q[t] + Σ_{s ≤ t} e^(g[t] − g[s]) (q[t]·k[s]) w[s]. Blocks of kBlock tokens turn this into
/// matrix products; only the triangle inside a block is solved row by row. No exponent is above 0.
/// Sources: Yang et al. (2024), arXiv:2406.06484, section 3, with the inverse of I + A replaced by substitution; decay:
/// arXiv:2412.06464, section 3.3.
class RecurrenceChunk {
 public:
  static constexpr std::size_t kTokens = 64, kBlock = 16;

  /// @param scratch  scratch_floats() floats, aligned to a cache line
  RecurrenceChunk(const RecurrenceShape& shape, float* scratch);
  static std::size_t scratch_floats(const RecurrenceShape& shape);

  // The caller fills these for the chunk's tokens: q and k [key_dim], beta, and the decay's exponent (at most 0).
  float* query(std::size_t token) const noexcept { return rows_ + row_of(token) * shape_.key_dim; }
  float* key(std::size_t token) const noexcept { return query(token) + kBlock * shape_.key_dim; }
  float& beta(std::size_t token) const noexcept { return betas_[token]; }
  float& decay(std::size_t token) const noexcept { return decays_[token]; }

  /// Writes the tokens' outputs and moves `state` [key_dim, value_dim] on.
  void run(const RecurrenceTokens& tokens, float* state) noexcept;

 private:
  static constexpr std::size_t row_of(std::size_t token) noexcept {
    return token / kBlock * 2 * kBlock + token % kBlock;
  }
  void step(const RecurrenceTokens& tokens, std::size_t token, float* state) const noexcept;
  void pad(std::size_t count) noexcept;
  void pack_keys() noexcept;
  void run_block(const RecurrenceTokens& tokens, std::size_t block) noexcept;
  void scale_scores(std::size_t block) noexcept;
  void write_rows(const RecurrenceTokens& tokens, std::size_t block) noexcept;
  void solve_block(std::size_t block) noexcept;
  void move_state(float* state) noexcept;
  void multiply(std::size_t m, std::size_t n, std::size_t k, const float* x, const float* panels,
                std::size_t panel_rows, float* out, bool accumulate) const noexcept;

  RecurrenceShape shape_;
  std::size_t padded_ = 0;  // tokens of the chunk, up to whole blocks
  float *betas_, *decays_;  // [kTokens]
  float* sums_;             // [kTokens]: g
  float* rows_;             // [block][queries, then keys: kBlock each][key_dim]
  float* key_panels_;       // [block][key_dim][kBlock]
  float* late_keys_;        // [key_dim, padded_]: keys, decayed from their token to the chunk's end
  float* state_panels_;     // [panel][key_dim][kPanel]
  float* from_state_;       // [queries, then keys: kBlock each][value_dim] · S0
  float* scores_;           // [queries, then keys: kBlock each][tokens up to the block's end]
  float* lower_;            // [kBlock][tokens before the block]: −A
  float* written_;          // [kBlock][value_dim]: w of the block
  float* written_panels_;   // [panel][kTokens][kPanel]: w
  float* mixed_;            // [kBlock][value_dim]
  float* product_scratch_;
};

}  // namespace kvs::cpu
