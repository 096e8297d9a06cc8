// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/forward_ops.h"

namespace kvs::inline kernels {

/// Operations on single values. A device without them cannot run the models that need them.
class ElementOps {
 public:
  virtual ~ElementOps() = default;

  /// x = factor · x.
  virtual void scale(BackendView<float, 2> x, float factor);
  /// x[r, c] = x[r, c] · factors[r mod tokens, c]: the rows of every member are multiplied by the same factors.
  /// x: [member · token, column], factors: [token, column].
  virtual void multiply(BackendView<const float, 2> factors, Operand x);
  /// Sets all values to 0.
  virtual void clear(BackendView<float, 2> x);
};

}  // namespace kvs::inline kernels
