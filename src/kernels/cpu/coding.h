// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/attention_ops.h"
#include "kernels/coding_ops.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/products.h"

namespace kvs::inline kernels {

/// The coding of rows on the host, without the rest of a backend: the same functions as CpuBackend's, so the same bits.
/// Not thread-safe, but cheap to make: threads use one each and may share weights.
class CpuCoding final : public CodingOps {
 public:
  /// @param threads  of each operation, at least 1
  explicit CpuCoding(int threads);

  DeviceMemory& memory() noexcept override;
  std::unique_ptr<Weight> make_weight(const WeightSource& source) override;
  void linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                  bool accumulate) override;
  void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                   BackendView<float, 4> v) override;
  void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count, const StoredRows& held,
                   std::size_t at) override;
  void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) override;
  /// As ForwardOps::rope(), of all chunks.
  void rope(BackendView<float, 4> x, const RopeTable& table, RopeDirection direction);
  /// As AttentionOps::attention(), of a single token of one member with at most kMaxQueryRows query heads a KV head.
  /// @param out  [query_head, head_dim];  @param log_sums  [query_head]: ln Σ exp(score) over the keys that are read
  void attend(const AttentionInput& input, BackendView<float, 2> out, std::span<float> log_sums);

 private:
  int threads_;
  std::unique_ptr<cpu::ProductEngine> products_;
  std::vector<cpu::AlignedBuffer> scratch_;  // [thread]
  cpu::AlignedBuffer attention_scratch_;
};

}  // namespace kvs::inline kernels
