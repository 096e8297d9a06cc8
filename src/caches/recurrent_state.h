// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/device_memory.h"

namespace kvs::inline caches {

/// The state of one layer's recurrent block for one sequence. Its size does not depend on the number of tokens. Empty
/// before the first token.
struct RecurrentState {
  BackendTensor<float, 2> inputs;  // [tap − 1, channel]: the convolution's last inputs
  BackendTensor<float, 3> memory;  // [value_head, key_dim, value_dim], or empty

  bool empty() const noexcept { return inputs.view().data() == nullptr && memory.view().data() == nullptr; }
  std::size_t bytes() const noexcept { return inputs.bytes() + memory.bytes(); }
};

}  // namespace kvs::inline caches
