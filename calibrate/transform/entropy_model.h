// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvs::inline calibrate {

// Two quantisers of a coefficient, in steps: quantiser 0 has the even integers, quantiser 1 has 0 and the odd ones.
// A trellis of kTrellisStates states selects the quantiser: the state's last bit, which depends on the previous
// coefficients. Source: Marcellin & Fischer (1990), IEEE Transactions on Communications 38(1), with entropy coding as
// in Fischer & Wang (1992), IEEE Transactions on Information Theory 38(2), and two union quantisers as in JPEG 2000
// (ISO 15444-2).

inline constexpr std::size_t kTrellisStates = 8, kQuantisers = 2;
/// Magnitudes of a quantiser that have a probability; the last one also stands for all greater ones.
inline constexpr std::size_t kLevels = 16;
inline constexpr float kMostValue = 2 * kLevels;  // of EntropyModel::values
/// What a probability depends on: the coefficient's deviation (quarter octaves from 2^-2.5 steps), the size of the
/// token's previous coefficients relative to what is expected, and the magnitude of the same coefficient in the two
/// tokens before it in the block.
inline constexpr std::size_t kScaleClasses = 36, kRatioClasses = 7, kPastClasses = 5;
inline constexpr double kMinScale = -2.5;  // log2 of the least deviation that is coded, in steps
/// Probabilities are multiples of 2^-kProbabilityBits; expected magnitudes are multiples of 1/kMagnitudeUnit.
inline constexpr std::uint32_t kProbabilityBits = 12, kFrequencySum = 1U << kProbabilityBits, kMagnitudeUnit = 256;
inline constexpr std::int32_t kMaxMagnitude = 30000;  // steps

/// The tables that all groups of layers share.
struct EntropyModel {
  static constexpr std::size_t kContexts = kScaleClasses * kRatioClasses * kPastClasses * kQuantisers;

  std::vector<std::uint16_t> frequencies;  // [scale, ratio, past, quantiser, level]; those of a context sum to 2^12
  std::vector<std::uint32_t> expected;     // [scale]: magnitude in 1/kMagnitudeUnit steps
  std::vector<float> values;               // [scale, quantiser, level]: decoded magnitude in steps

  /// Returns the decoded value of an index in steps. @param magnitude  signed; its parity is that of the quantiser
  float value(std::size_t scale, std::int32_t magnitude) const noexcept;
};

/// Returns the level of a magnitude (not negative) of its quantiser: 0, 2, 4 … or 0, 1, 3, 5 … are 0, 1, 2 ….
constexpr std::uint32_t level_of(std::int32_t magnitude) noexcept {
  return (static_cast<std::uint32_t>(magnitude) + 1) / 2;
}
constexpr std::int32_t magnitude_of(std::uint32_t quantiser, std::uint32_t level) noexcept {
  return level == 0 ? 0 : static_cast<std::int32_t>(2 * level - quantiser);
}

/// Returns the state after a coefficient with the given level.
std::uint32_t next_state(std::uint32_t state, std::uint32_t level) noexcept;

/// Returns the scale class of a deviation in steps; kScaleClasses: it is not coded.
std::size_t scale_class(double deviation) noexcept;

/// The context of the coefficients of one token, in integers: an encoder and every decoder compute the same.
class TokenContext {
 public:
  /// @param magnitudes  of the block, [token, coefficient]; those of the two tokens before `token` are read
  TokenContext(const EntropyModel& model, std::span<const std::int32_t> magnitudes, std::size_t coefficients,
               std::size_t token)
      : model_(&model) {
    if (token >= 1) before_ = magnitudes.subspan((token - 1) * coefficients, coefficients);
    if (token >= 2) earlier_ = magnitudes.subspan((token - 2) * coefficients, coefficients);
  }

  /// Returns the index of a coefficient's probabilities for quantiser 0, in units of kLevels; that for quantiser 1 is
  /// the next.
  std::size_t of(std::size_t coefficient, std::size_t scale) const noexcept;
  /// Called after each coefficient. @param magnitude  not negative
  void add(std::size_t scale, std::int32_t magnitude) noexcept;

 private:
  std::size_t ratio() const noexcept;
  std::size_t past(std::size_t coefficient, std::size_t scale) const noexcept;

  static constexpr std::uint64_t kStart = 8 * kMagnitudeUnit;  // as if so much had come and had been expected
  const EntropyModel* model_;
  std::span<const std::int32_t> before_, earlier_;
  std::uint64_t found_ = kStart, expected_ = kStart;
};

/// Calls visit(index, context, quantiser) for each level of a block, [token, coefficient], in the order of coding.
/// `context` is that of the quantiser. @param magnitudes  signed, on a path of the trellis
template <class Visit>
void for_each_level(const EntropyModel& model, std::span<const std::int32_t> magnitudes,
                    std::span<const std::uint8_t> scales, const Visit& visit) {
  const std::size_t count = scales.size(), tokens = count == 0 ? 0 : magnitudes.size() / count;
  for (std::size_t token = 0; token < tokens; ++token) {
    TokenContext context(model, magnitudes, count, token);
    std::uint32_t state = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t index = token * count + n;
      const std::int32_t size = magnitudes[index] < 0 ? -magnitudes[index] : magnitudes[index];
      const std::uint32_t quantiser = state % kQuantisers;
      visit(index, context.of(n, scales[n]) + quantiser, quantiser);
      context.add(scales[n], size);
      state = next_state(state, level_of(size));
    }
  }
}

/// Returns a model of Laplacian coefficients.
EntropyModel laplacian_model();

/// Counts of coded coefficients, from which a model is fitted.
struct LevelCounts {
  LevelCounts();
  void add(std::size_t context, std::size_t scale, std::uint32_t quantiser, std::int32_t magnitude, float wanted);
  LevelCounts& operator+=(const LevelCounts& other);
  /// Returns the model of these counts; where there are few, the probabilities of all ratios and pasts of a scale, and
  /// then those of `previous`, stand in.
  EntropyModel model(const EntropyModel& previous) const;

  std::vector<double> counts;         // [context, level]
  std::vector<double> sums, weights;  // [scale, quantiser, level]: of magnitudes that became this level
};

}  // namespace kvs::inline calibrate
