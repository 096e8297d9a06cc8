// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/json.h"
#include "model/checkpoints/module_patterns.h"
#include "model/checkpoints/scale_grid.h"

namespace kvs::inline model {

/// How compressed-tensors stores the weights of some modules: an object of config_groups.
struct CompressedScheme {
  enum class Codes {
    kE4m3,    // weight F8_E4M3
    kI8,      // weight I8
    kPacked,  // weight_packed I32: codes of `bits` bits
    kNvFp4,   // weight_packed U8: E2M1 with F8_E4M3 scales and one F32 divisor
    kMxFp4,   // weight_packed U8: E2M1 with F8_E8M0 scales
    kMxFp8    // weight F8_E4M3 with F8_E8M0 scales
  };

  std::string format;
  Codes codes = Codes::kE4m3;
  std::size_t bits = 8;
  BlockSize block = {};
  bool grouped = false;       // scales for groups of columns
  bool symmetric = true;      // no zero points
  bool reordered = false;     // weight_g_idx gives each column's group
  bool packed_zeros = false;  // weight_zero_point is packed like the weights
  std::vector<ModulePattern> targets;
};

/// Reads an object of config_groups. @param format  of the whole checkpoint, unless the group states its own
/// @throws Error kUnsupported by name, kInput with the JSON pointer.
CompressedScheme read_compressed_scheme(const JsonCursor& group, const std::string& format);

}  // namespace kvs::inline model
