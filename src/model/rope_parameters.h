#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvs::inline model {

/// How a model stretches RoPE's frequencies beyond its first training length. Each member names the types that use it.
struct RopeScaling {
  enum class Type : std::uint8_t { kDefault, kLinear, kDynamic, kLlama3, kYarn, kLongRope, kFactors };
  Type type = Type::kDefault;
  double factor = 1;                     // kLinear, kDynamic, kLlama3, kYarn
  double low_frequency_factor = 1;       // kLlama3
  double high_frequency_factor = 4;      // kLlama3
  double original_context = 8192;        // kDynamic (max_position_embeddings), kLlama3, kYarn, kLongRope
  double beta_fast = 32;                 // kYarn: turns over original_context above which a chunk keeps its frequency
  double beta_slow = 1;                  // kYarn: turns below which a chunk is stretched by the whole factor
  bool truncate = true;                  // kYarn: the two bounds are rounded outwards to whole chunks
  double attention_factor = 1;           // kYarn, kLongRope: multiplies cos and sin, so scores by its square
  std::vector<float> factors = {};       // kFactors, kLongRope up to original_context: [rotary_dim / 2] divisors
  std::vector<float> long_factors = {};  // kLongRope beyond original_context: [rotary_dim / 2] divisors

  bool operator==(const RopeScaling&) const = default;
};

/// The rotary embedding of a model, or of one kind of its layers.
struct RopeParameters {
  double theta = 10000;  // base of the frequencies
  std::size_t rotary_dim =
      0;  // rotated channels of a head: chunk c = channels (c, c + rotary_dim / 2); the others are never rotated
  RopeScaling scaling = {};

  std::size_t chunks() const noexcept { return rotary_dim / 2; }
  bool operator==(const RopeParameters&) const = default;
};

/// The rotation of documents of one length.
struct RopeAngles {
  std::vector<double> frequencies;  // [rotary_dim / 2] radians per token, each a value of f32
  double factor = 1;                // multiplies cos and sin

  bool operator==(const RopeAngles&) const = default;
};

/// Returns the angles. If frequencies depend on length (kDynamic, kLongRope), all tokens of a document, including its
/// cached prefix, use the frequencies of the document's whole length, as in Transformers when it reads the document in
/// one pass. For every other type, all lengths give the same angles. The arithmetic is f32 and f64 as in Transformers'
/// modeling_rope_utils.py, so that angles agree to the last bit or nearly so.
/// @param tokens  the document's length; outputs record it next to the frequencies
RopeAngles rope_angles(const RopeParameters& rope, std::size_t tokens);

/// Returns a value that is equal for lengths with equal angles; 0 if length does not matter.
std::size_t rope_length_class(const RopeParameters& rope, std::size_t tokens) noexcept;

}  // namespace kvs::inline model
