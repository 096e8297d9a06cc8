// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <vector>

#include "tests/kernels/support.h"

namespace kvs {

inline void PrintTo(const RowFormat& format, std::ostream* out) {
  *out << "kind " << static_cast<int>(format.kind) << " pairs " << format.adjacent_pairs << " rotation "
       << format.hadamard << " split " << format.split << " across tokens " << format.across_tokens;
}

namespace test {

/// Rows [head, row, value] coded in a format, with capacity for a few more.
class CodedRows {
 public:
  CodedRows(Backend& backend, const RowFormat& format, const std::vector<float>& values, std::size_t heads,
            std::size_t width, const std::vector<float>& scales = {})
      : backend_(&backend), heads_(heads), rows_(values.size() / heads / width), width_(width) {
    const std::size_t spare = format.across_tokens ? format.group : 3;
    held_.shape = {1, heads, rows_ + spare, width};
    held_.format = format;
    held_.count = rows_;
    memory_ = BackendTensor<std::byte, 1>(backend, {heads * held_.bytes(rows_ + spare)});
    held_.data = memory_.view().data();
    scales_ = uploaded<1>(backend, scales, {scales.size()});
    if (!scales.empty()) held_.scales = scales_.view();
    const auto from = uploaded<4>(backend, values, {1, heads, rows_, width});
    backend.encode_rows(from.view(), 0, rows_, held_, 0);
  }

  const StoredRows& held() const noexcept { return held_; }
  /// Bytes of all heads, without the spare capacity.
  std::vector<std::byte> bytes() const {
    const auto all = download(*backend_, memory_.view());
    std::vector<std::byte> used;
    for (std::size_t head = 0; head < heads_; ++head) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(head * held_.bytes(held_.shape[2]));
      used.insert(used.end(), first, first + static_cast<std::ptrdiff_t>(held_.bytes(rows_)));
    }
    return used;
  }
  /// Returns the decoded values of rows from `first` on, [1, head, row, value].
  BackendTensor<float, 4> decoded(std::size_t first = 0) const {
    BackendTensor<float, 4> rows(*backend_, {1, heads_, rows_ - first, width_});
    backend_->decode_rows(held_, first, rows.view());
    return rows;
  }

 private:
  Backend* backend_;
  std::size_t heads_, rows_, width_;
  BackendTensor<std::byte, 1> memory_;
  BackendTensor<float, 1> scales_;
  StoredRows held_;
};

/// A format of every type, with each transform that may precede the codes.
inline std::vector<RowFormat> all_formats() {
  std::vector<RowFormat> formats;
  for (unsigned kind = 0; kind <= static_cast<unsigned>(RowKind::kNvFp4); ++kind)
    formats.push_back({.kind = static_cast<RowKind>(kind), .group = 32});
  formats.push_back({.kind = RowKind::kQ4_0, .adjacent_pairs = 64, .hadamard = 64});
  formats.push_back({.kind = RowKind::kQ8_0, .adjacent_pairs = 32, .hadamard = 64});
  formats.push_back({.kind = RowKind::kQ8_0, .split = 24});
  formats.push_back({.kind = RowKind::kNvFp4, .split = 24});
  formats.push_back({.kind = RowKind::kInt4Row, .signs = true, .hadamard = 32});
  formats.push_back({.kind = RowKind::kTurboKey3, .hadamard = 64});
  for (const RowKind kind : {RowKind::kKivi2, RowKind::kKivi4})
    formats.push_back({.kind = kind, .across_tokens = true, .group = 32});
  return formats;
}

}  // namespace test
}  // namespace kvs
