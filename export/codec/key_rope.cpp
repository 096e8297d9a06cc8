// SPDX-License-Identifier: Apache-2.0
#include "export/codec/key_rope.h"

#include <algorithm>

#include "kernels/rope_rows.h"

namespace kvs::inline exporting {

struct KeyRope::Table {
  BackendTensor<float, 2> cosine, sine;  // [position, chunk]
};

std::shared_ptr<const KeyRope::Table> KeyRope::made(DeviceMemory& memory, std::size_t first, std::size_t count) const {
  auto table = std::make_shared<Table>(
      Table{BackendTensor<float, 2>(memory, {count, chunks()}), BackendTensor<float, 2>(memory, {count, chunks()})});
  write_rope_rows(frequencies_, factor_, first, count, table->cosine.view().data(), table->sine.view().data());
  return table;
}

KeyRope::Rows KeyRope::rows(DeviceMemory& memory, std::size_t first, std::size_t count) const {
  const auto rows_of = [&](std::shared_ptr<const Table> table, std::size_t at) {
    const auto part = [&](const BackendTensor<float, 2>& of) {
      return BackendView<const float, 2>(std::span<const float>(of.view().data() + at * chunks(), count * chunks()),
                                         {count, chunks()});
    };
    return Rows{{part(table->cosine), part(table->sine), static_cast<float>(factor_)}, std::move(table)};
  };
  const std::size_t end = first + count;
  if (end > kKept) return rows_of(made(memory, first, count), 0);
  const std::lock_guard lock(mutex_);
  if (const std::size_t held = kept_ ? kept_->cosine.view().extent(0) : 0; held < end)
    kept_ = made(memory, 0, std::min(kKept, std::max(end, 2 * held)));
  return rows_of(kept_, first);
}

}  // namespace kvs::inline exporting
