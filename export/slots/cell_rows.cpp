// SPDX-License-Identifier: Apache-2.0
#include "export/slots/cell_rows.h"

#include <cstdint>
#include <cstring>
#include <numeric>

namespace kvs::inline exporting {
namespace {

/// Calls copy(row's byte, stored byte) for the values of each token.
template <class Copy>
void each_value(const CellOrder& order, std::size_t size, std::span<const std::size_t> cells, const Copy& copy) {
  std::vector<std::size_t> places(order.values);
  for (std::size_t value = 0; value < places.size(); ++value)
    places[value] = order.pairs.head_dim == 0 ? value : interleaved_row(value, order.pairs);
  for (std::size_t token = 0; token < cells.size(); ++token)
    for (std::size_t value = 0; value < places.size(); ++value)
      copy((token * order.values + value) * size, (order.transposed ? places[value] * order.cells + cells[token]
                                                                    : cells[token] * order.values + places[value]) *
                                                      size);
}

/// Calls use with an integer of the type's size.
template <class Use>
void with_word(DType type, const Use& use) {
  if (type == DType::kF32)
    use(std::uint32_t{});
  else
    use(std::uint16_t{});
}

}  // namespace

std::vector<std::byte> gathered_rows(std::span<const std::byte> stored, DType type, const CellOrder& order,
                                     std::span<const std::size_t> cells) {
  std::vector<std::byte> rows(cells.size() * order.values * item_size(type));
  with_word(type, [&](auto word) {
    each_value(order, sizeof word, cells, [&](std::size_t row, std::size_t from) {
      std::memcpy(rows.data() + row, stored.data() + from, sizeof word);
    });
  });
  return rows;
}

std::vector<std::byte> stored_rows(std::span<const std::byte> rows, DType type, const CellOrder& order) {
  std::vector<std::byte> stored(rows.size());
  std::vector<std::size_t> cells(order.cells);
  std::iota(cells.begin(), cells.end(), 0);
  with_word(type, [&](auto word) {
    each_value(order, sizeof word, cells, [&](std::size_t row, std::size_t to) {
      std::memcpy(stored.data() + to, rows.data() + row, sizeof word);
    });
  });
  return stored;
}

}  // namespace kvs::inline exporting
