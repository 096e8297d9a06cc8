// SPDX-License-Identifier: Apache-2.0
#include "model/rope_angles.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kvs::inline model {

namespace {

/// Returns 1 / theta_c = base^(2c / rotary_dim), like torch.pow of a scalar and an f32 tensor.
float inverse_frequency(double base, std::size_t chunk, std::size_t rotary_dim) {
  const float exponent = static_cast<float>(2 * chunk) / static_cast<float>(rotary_dim);
  return static_cast<float>(std::pow(static_cast<double>(static_cast<float>(base)), static_cast<double>(exponent)));
}

/// NTK scaling: the base grows with the length. In Transformers the length is a tensor, so the arithmetic is f32.
double dynamic_base(const RopeParameters& rope, std::size_t length) {
  const double context = rope.scaling.original_context;
  if (static_cast<double>(length) <= context) return rope.theta;
  const auto factor = static_cast<float>(rope.scaling.factor), dim = static_cast<float>(rope.rotary_dim);
  const float stretch =
      factor * static_cast<float>(length) / static_cast<float>(context) - static_cast<float>(rope.scaling.factor - 1);
  const double exponent = static_cast<double>(dim) / static_cast<double>(dim - 2);
  const auto power =
      static_cast<float>(std::pow(static_cast<double>(stretch), static_cast<double>(static_cast<float>(exponent))));
  return static_cast<float>(rope.theta) * power;
}

/// Source: Transformers' _compute_llama3_parameters. `scalar / tensor` is reciprocal times scalar in PyTorch.
float llama3_frequency(float frequency, const RopeScaling& scaling) {
  const auto factor = static_cast<float>(scaling.factor);
  const float wavelength = (1.0F / frequency) * static_cast<float>(2 * std::numbers::pi);
  const auto low = static_cast<float>(scaling.original_context / scaling.low_frequency_factor);
  const auto high = static_cast<float>(scaling.original_context / scaling.high_frequency_factor);
  if (wavelength > low) return frequency / factor;
  if (wavelength < high) return frequency;
  const float turns = (1.0F / wavelength) * static_cast<float>(scaling.original_context);
  const float smooth = (turns - static_cast<float>(scaling.low_frequency_factor)) /
                       static_cast<float>(scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

/// Returns the chunk, as a real number, that makes `turns` turns over the original context.
double yarn_chunk(const RopeParameters& rope, double turns) {
  return static_cast<double>(rope.rotary_dim) *
         std::log(rope.scaling.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
}

/// Fast chunks keep their frequency, slow chunks are stretched, with a linear ramp between them.
/// Source: YaRN (Peng et al. 2023, arXiv:2309.00071), section 3.2.
std::vector<double> yarn_frequencies(const RopeParameters& rope) {
  double low = yarn_chunk(rope, rope.scaling.beta_fast), high = yarn_chunk(rope, rope.scaling.beta_slow);
  if (rope.scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.rotary_dim) - 1);
  if (low == high) high += 0.001;  // like Transformers: avoids a division by zero
  std::vector<double> frequencies(rope.chunks());
  for (std::size_t chunk = 0; chunk < frequencies.size(); ++chunk) {
    const float inverse = inverse_frequency(rope.theta, chunk, rope.rotary_dim);
    const float kept = 1.0F / inverse, stretched = 1.0F / (static_cast<float>(rope.scaling.factor) * inverse);
    const float ramp = (static_cast<float>(chunk) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float share = 1.0F - std::clamp(ramp, 0.0F, 1.0F);
    frequencies[chunk] = stretched * (1.0F - share) + kept * share;
  }
  return frequencies;
}

/// Source: Transformers' _compute_proportional_rope_parameters.
std::size_t turning_chunks(const RopeParameters& rope) {
  return static_cast<std::size_t>(rope.scaling.share * static_cast<double>(rope.rotary_dim) / 2);
}

float scaled_frequency(const RopeParameters& rope, double base, std::size_t chunk, bool beyond) {
  const RopeScaling& scaling = rope.scaling;
  const float inverse = inverse_frequency(base, chunk, rope.rotary_dim), frequency = 1.0F / inverse;
  switch (scaling.type) {
    case RopeScaling::Type::kLinear:
      return frequency / static_cast<float>(scaling.factor);
    case RopeScaling::Type::kLlama3:
      return llama3_frequency(frequency, scaling);
    case RopeScaling::Type::kFactors:
      return frequency / scaling.factors[chunk];
    case RopeScaling::Type::kProportional:
      return chunk < turning_chunks(rope) ? frequency / static_cast<float>(scaling.factor) : 0;
    case RopeScaling::Type::kNone:
      return 0;
    case RopeScaling::Type::kLongRope:
      return 1.0F / ((beyond ? scaling.long_factors : scaling.factors)[chunk] * inverse);
    case RopeScaling::Type::kDefault:
    case RopeScaling::Type::kDynamic:
    case RopeScaling::Type::kYarn:
      break;
  }
  return frequency;
}

}  // namespace

std::size_t rope_length_class(const RopeParameters& rope, std::size_t tokens) noexcept {
  const bool beyond = static_cast<double>(tokens) > rope.scaling.original_context;
  if (!beyond) return 0;
  if (rope.scaling.type == RopeScaling::Type::kDynamic) return tokens;
  return rope.scaling.type == RopeScaling::Type::kLongRope ? 1 : 0;
}

RopeAngles rope_angles(const RopeParameters& rope, std::size_t tokens) {
  const bool beyond = rope_length_class(rope, tokens) != 0;
  RopeAngles angles;
  const RopeScaling::Type type = rope.scaling.type;
  if (type == RopeScaling::Type::kYarn || type == RopeScaling::Type::kLongRope) {
    angles.factor = rope.scaling.attention_factor;
  }
  if (type == RopeScaling::Type::kYarn) {
    angles.frequencies = yarn_frequencies(rope);
    return angles;
  }
  const double base = type == RopeScaling::Type::kDynamic && beyond ? dynamic_base(rope, tokens) : rope.theta;
  angles.frequencies.resize(rope.chunks());
  for (std::size_t chunk = 0; chunk < rope.chunks(); ++chunk) {
    angles.frequencies[chunk] = scaled_frequency(rope, base, chunk, beyond);
  }
  return angles;
}

}  // namespace kvs::inline model
