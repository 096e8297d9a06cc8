// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/token_inputs.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace kvs::inline calibrate {

RowBuffer::Part rows_of_operand(Backend& backend, const Operand& x) {
  RowBuffer::Part rows(backend, {1, 1, x.rows, x.columns});
  std::vector<std::int32_t> all(x.rows);
  std::iota(all.begin(), all.end(), 0);
  backend.gather(x, all, 1, rows.view().reshape<2>({x.rows, x.columns}));
  return rows;
}

void TokenInputs::add(const LayerStates& states) {
  if (states.first_position != rows_.count() || states.x.rows != states.tokens())
    throw Error(ErrorCode::kInternal, "cache", "tokens without their embeddings");
  const RowBuffer::Part fresh = rows_of_operand(states.backend, states.x);
  rows_.append(states.backend, fresh.view(), 0, states.tokens());
}

RowBuffer::Part TokenInputs::copy(Backend& backend, std::size_t first, std::size_t count) const {
  if (first + count > rows_.count()) throw Error(ErrorCode::kInternal, "cache", "tokens without their embeddings");
  return rows_.copy(backend, first, count);
}

CacheBytes TokenInputs::bytes() const noexcept {
  CacheBytes bytes = rows_.bytes();
  bytes.stored = 0;
  return bytes;
}

}  // namespace kvs::inline calibrate
