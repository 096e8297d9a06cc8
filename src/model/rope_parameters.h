// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvs::inline model {

/// How a model stretches RoPE's frequencies beyond its first training length. Each member names the types that use it.
struct RopeScaling {
  /// kProportional: only the first chunks rotate, with the frequencies of a whole head. kNone: nothing is rotated. Both
  /// give the other chunks the frequency 0.
  enum class Type : std::uint8_t {
    kDefault,
    kLinear,
    kDynamic,
    kLlama3,
    kYarn,
    kLongRope,
    kFactors,
    kProportional,
    kNone
  };
  Type type = Type::kDefault;
  double factor = 1;                     // kLinear, kDynamic, kLlama3, kYarn, kProportional
  double low_frequency_factor = 1;       // kLlama3
  double high_frequency_factor = 4;      // kLlama3
  double original_context = 8192;        // kDynamic (max_position_embeddings), kLlama3, kYarn, kLongRope
  double beta_fast = 32;                 // kYarn: turns over original_context above which a chunk keeps its frequency
  double beta_slow = 1;                  // kYarn: turns below which a chunk is stretched by the whole factor
  bool truncate = true;                  // kYarn: the two bounds are rounded outwards to whole chunks
  double share = 1;                      // kProportional: of the chunks that rotate
  double attention_factor = 1;           // kYarn, kLongRope: multiplies cos and sin, so scores by its square
  std::vector<float> factors = {};       // kFactors, kLongRope up to original_context: [rotary_dim / 2] divisors
  std::vector<float> long_factors = {};  // kLongRope beyond original_context: [rotary_dim / 2] divisors

  bool operator==(const RopeScaling&) const = default;
};

/// The rotary embedding of a model, or of one kind of its layers.
struct RopeParameters {
  double theta = 10000;  // base of the frequencies
  /// Rotated channels of a head: chunk c is the channels (c, c + rotary_dim / 2). The other channels never rotate.
  std::size_t rotary_dim = 0;
  RopeScaling scaling = {};

  std::size_t chunks() const noexcept { return rotary_dim / 2; }
  bool operator==(const RopeParameters&) const = default;
};

}  // namespace kvs::inline model
