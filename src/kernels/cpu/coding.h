#pragma once

#include <cstddef>
#include <memory>
#include <vector>

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

 private:
  int threads_;
  std::unique_ptr<cpu::ProductEngine> products_;
  std::vector<cpu::AlignedBuffer> scratch_;  // [thread]
};

}  // namespace kvs::inline kernels
