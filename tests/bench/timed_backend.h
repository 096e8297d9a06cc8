// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "kernels/cpu/cpu_backend.h"

namespace kvs::bench {

/// The time that one kind of operation took, and the work that it needs at least.
struct OperationWork {
  std::size_t calls = 0;
  double seconds = 0;
  double flops = 0;  // of products
  double bytes = 0;  // read and written once: operands, weights and results

  OperationWork& operator+=(const OperationWork& other);
};

enum class Operation : std::size_t {
  kLinear,  // projections of attention, the second product of a feed-forward block
  kUpProjection,
  kAttention,
  kHead,
  kNorm,
  kRope,
  kSplitHeads,
  kRowCodes,  // encode_rows(), decode_rows() and their products
  kOther,
  kCount
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Operation::kCount)> kOperationNames = {
    "linear", "up_projection", "attention", "head", "norms", "rope", "split_heads", "row codes", "copies, embeddings"};
using OperationWorks = std::array<OperationWork, static_cast<std::size_t>(Operation::kCount)>;

/// Returns the sum over all operations.
OperationWork total_of(const OperationWorks& works);

/// The CPU backend with a clock around the operations of a forward pass.
class TimedBackend final : public CpuBackend {
 public:
  using CpuBackend::CpuBackend;

  /// Returns the work since the last clear_works().
  const OperationWorks& works() const noexcept { return works_; }
  void clear_works() noexcept { works_ = {}; }

  void copy(void* to, const void* from, std::size_t bytes) override;
  void rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon, Operand out) override;
  void rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                    BackendView<float, 2> sum) override;
  void layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, BackendView<const float, 1> bias,
                  float epsilon, Operand out) override;
  void norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) override;
  void linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) override;
  void linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                  bool accumulate) override;
  void gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) override;
  void narrow(BackendView<const float, 2> x, Operand out) override;
  void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                   BackendView<float, 4> v) override;
  void rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position, RopeDirection direction,
            std::span<const std::uint8_t> chunks) override;
  void attention(const AttentionInput& input, Operand out) override;
  void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count, const StoredRows& held,
                   std::size_t at) override;
  void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) override;
  void up_projection(Operand x, const Weight& weight, Activation activation, Operand out) override;
  void cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets, std::span<float> nll,
                     float softcap) override;

 private:
  template <class Call>
  void timed(Operation operation, double flops, double bytes, Call call);
  double product_bytes(const Operand& x, const Weight& weight) const noexcept;

  OperationWorks works_{};
  bool runs_ = false;  // an operation is running: those that it calls are part of it
};

/// The fastest products and copies that this machine showed in this run.
struct MachinePeaks {
  double flops_per_second = 0;  // of a product of 2,048 rows with a weight of 2,048 × 2,048
  double bytes_per_second = 0;  // of a copy of 256 MiB by all threads, read and written bytes
};
MachinePeaks measure_peaks(CpuBackend& backend);

/// Prints a row of a Markdown table for each operation that ran, and for all together: the share of the time, the
/// rates, and the time that the peaks allow, as a share of the time that it took.
void print_works(const OperationWorks& works, const MachinePeaks& peaks);

}  // namespace kvs::bench
