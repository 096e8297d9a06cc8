// SPDX-License-Identifier: Apache-2.0
#include "model/laurel.h"

#include <cstdint>
#include <numeric>
#include <vector>

namespace kvs::inline model {

void Laurel::add(const Operand& x, const LaurelWeights& weights, float epsilon, const BackendView<float, 2>& sum) {
  const std::size_t rank = weights.down->rows();
  const BackendView<float, 2> low = low_.matrix(x.rows, rank), high = high_.matrix(x.rows, x.columns);
  const Operand low_x = low_x_.operand(x.rows, rank);
  backend_->linear(x, *weights.down, low, false);
  backend_->narrow(low, low_x);
  backend_->linear(low_x, *weights.up, high, false);
  backend_->rms_norm_add(high, weights.norm.gain.view(), epsilon, sum);
  std::vector<std::int32_t> rows(x.rows);
  std::iota(rows.begin(), rows.end(), 0);
  backend_->gather(x, rows, 1, high);
  backend_->add_rows(high, rows, std::vector<float>(x.rows, 1.0F), sum);
}

}  // namespace kvs::inline model
