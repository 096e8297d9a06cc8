// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "io/json.h"
#include "model/rope_parameters.h"

namespace kvs::inline model {

/// The scaling as JSON with Transformers' key names, defaults filled in; null for none.
Json rope_scaling_json(const RopeScaling& scaling);

/// Values of a config outside the scaling object on which the scaling's defaults depend.
struct RopeScalingContext {
  std::size_t chunks;           // rotary_dim / 2, the length of a list of factors
  double context;               // max_position_embeddings
  double original_context = 0;  // original_max_position_embeddings outside the scaling; 0: missing
  bool su_is_longrope = false;  // Phi-3: "su" and "yarn" are old names of longrope
  bool proportional = false;    // the family knows this type
  bool inside = false;  // written by rope_scaling_json(), which has more types and holds the context of dynamic itself
};

/// Reads rope_scaling or rope_parameters (a null or missing type means none), or the result of rope_scaling_json().
/// @throws Error kInput with the JSON pointer, kUnsupported with the type's name.
RopeScaling parse_rope_scaling(const JsonCursor& rope, const RopeScalingContext& context);

/// Converts all kinds to a JSON list of {theta, rotary_dim, scaling}, and back. @throws Error kInput.
Json ropes_json(std::span<const RopeParameters> ropes);
std::vector<RopeParameters> ropes_from_json(const JsonCursor& list);

}  // namespace kvs::inline model
