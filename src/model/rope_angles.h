// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "model/rope_parameters.h"

namespace kvs::inline model {

/// The rotation of documents of one length.
struct RopeAngles {
  std::vector<double> frequencies;  // [rotary_dim / 2] radians per token, each a value of f32
  double factor = 1;                // multiplies cos and sin

  bool operator==(const RopeAngles&) const = default;
};

/// Returns the angles. If frequencies depend on length (kDynamic, kLongRope), all tokens of a document use the
/// frequencies of its whole length, including those of a cached prefix. Transformers does this when it reads the
/// document in one pass. For every other type, all lengths give the same angles. The arithmetic is f32 and f64 as in
/// Transformers' modeling_rope_utils.py, so that angles agree to the last bit or nearly so.
/// @param tokens  the document's length; outputs record it next to the frequencies
RopeAngles rope_angles(const RopeParameters& rope, std::size_t tokens);

/// Returns a value that is equal for lengths with equal angles; 0 if length does not matter.
std::size_t rope_length_class(const RopeParameters& rope, std::size_t tokens) noexcept;

}  // namespace kvs::inline model
