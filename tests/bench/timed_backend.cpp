// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/timed_backend.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace kvs::bench {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class View>
double bytes_of(const View& view) {
  return static_cast<double>(view.size() * sizeof(float));
}

double flops_of(std::size_t rows, const Weight& weight) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(weight.rows() * weight.columns());
}

/// Returns the number of keys that all queries of one member and head read.
double read_pairs(const AttentionInput& input) {
  const std::size_t past = input.past.tokens_before(), tokens = input.q.extent(2);
  double pairs = 0;
  for (std::size_t token = 0; token < tokens; ++token) {
    const std::size_t row = past + token;
    pairs += static_cast<double>(row + 1 - oldest_row(row, input.window, input.chunk, input.first_position));
  }
  return pairs;
}

double stored_bytes(const StoredRows& rows) {
  return rows.empty() ? 0 : static_cast<double>(rows.shape[0] * rows.shape[1] * rows.bytes(rows.count));
}

double past_bytes(const PastKv& past) {
  return stored_bytes(past.k) + stored_bytes(past.v) + stored_bytes(past.late_k) + stored_bytes(past.late_v);
}

}  // namespace

OperationWork& OperationWork::operator+=(const OperationWork& other) {
  calls += other.calls;
  seconds += other.seconds;
  flops += other.flops;
  bytes += other.bytes;
  return *this;
}

OperationWork total_of(const OperationWorks& works) {
  OperationWork total;
  for (const OperationWork& work : works) total += work;
  return total;
}

template <class Call>
void TimedBackend::timed(Operation operation, double flops, double bytes, Call call) {
  if (runs_) return call();
  runs_ = true;
  const double start = now();
  call();
  works_[static_cast<std::size_t>(operation)] += {1, now() - start, flops, bytes};
  runs_ = false;
}

double TimedBackend::product_bytes(const Operand& x, const Weight& weight) const noexcept {
  return static_cast<double>(operand_bytes(*this, x.rows, x.columns) + weight.bytes());
}

void TimedBackend::copy(void* to, const void* from, std::size_t bytes) {
  timed(Operation::kOther, 0, 2.0 * static_cast<double>(bytes), [&] { CpuBackend::copy(to, from, bytes); });
}
void TimedBackend::rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                            Operand out) {
  timed(Operation::kNorm, 0, bytes_of(x) + static_cast<double>(operand_bytes(*this, out.rows, out.columns)),
        [&] { CpuBackend::rms_norm(x, gain, epsilon, out); });
}
void TimedBackend::rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                                BackendView<float, 2> sum) {
  timed(Operation::kNorm, 0, 3 * bytes_of(x), [&] { CpuBackend::rms_norm_add(x, gain, epsilon, sum); });
}
void TimedBackend::layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain,
                              BackendView<const float, 1> bias, float epsilon, Operand out) {
  timed(Operation::kNorm, 0, bytes_of(x) + static_cast<double>(operand_bytes(*this, out.rows, out.columns)),
        [&] { CpuBackend::layer_norm(x, gain, bias, epsilon, out); });
}
void TimedBackend::norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) {
  timed(Operation::kNorm, 0, 2 * bytes_of(x), [&] { CpuBackend::norm_heads(x, gain, epsilon); });
}
void TimedBackend::linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) {
  timed(Operation::kLinear, flops_of(x.rows, weight), product_bytes(x, weight) + (accumulate ? 2 : 1) * bytes_of(out),
        [&] { CpuBackend::linear(x, weight, out, accumulate); });
}
void TimedBackend::linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                              bool accumulate) {
  timed(Operation::kRowCodes, flops_of(x.extent(0), weight),
        bytes_of(x) + static_cast<double>(weight.bytes()) + (accumulate ? 2 : 1) * bytes_of(out),
        [&] { CpuBackend::linear_f32(x, weight, out, accumulate); });
}
void TimedBackend::gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) {
  timed(Operation::kOther, 0, static_cast<double>(operand_bytes(*this, rows.size(), table.columns)) + bytes_of(out),
        [&] { CpuBackend::gather(table, rows, scale, out); });
}
void TimedBackend::narrow(BackendView<const float, 2> x, Operand out) {
  timed(Operation::kOther, 0, bytes_of(x) + static_cast<double>(operand_bytes(*this, out.rows, out.columns)),
        [&] { CpuBackend::narrow(x, out); });
}
void TimedBackend::split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                               BackendView<float, 4> v) {
  timed(Operation::kSplitHeads, 0, 2 * bytes_of(qkv), [&] { CpuBackend::split_heads(qkv, q, k, v); });
}
void TimedBackend::rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position,
                        RopeDirection direction, std::span<const std::uint8_t> chunks) {
  timed(Operation::kRope, 0, 2 * bytes_of(x), [&] { CpuBackend::rope(x, table, first_position, direction, chunks); });
}
void TimedBackend::attention(const AttentionInput& input, Operand out) {
  const double heads = static_cast<double>(input.q.extent(0) * input.q.extent(1)),
               head_dim = static_cast<double>(input.q.extent(3));
  timed(Operation::kAttention, 4 * heads * head_dim * read_pairs(input),
        bytes_of(input.q) + bytes_of(input.k) + bytes_of(input.v) + past_bytes(input.past) +
            static_cast<double>(operand_bytes(*this, out.rows, out.columns)),
        [&] { CpuBackend::attention(input, out); });
}
void TimedBackend::encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                               const StoredRows& held, std::size_t at) {
  const double share = static_cast<double>(count) / static_cast<double>(rows.extent(2));
  timed(Operation::kRowCodes, 0, share * bytes_of(rows),
        [&] { CpuBackend::encode_rows(rows, first, count, held, at); });
}
void TimedBackend::decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) {
  timed(Operation::kRowCodes, 0, bytes_of(out), [&] { CpuBackend::decode_rows(held, first, out); });
}
void TimedBackend::up_projection(Operand x, const Weight& weight, Activation activation, Operand out) {
  timed(Operation::kUpProjection, flops_of(x.rows, weight),
        product_bytes(x, weight) + static_cast<double>(operand_bytes(*this, out.rows, out.columns)),
        [&] { CpuBackend::up_projection(x, weight, activation, out); });
}
void TimedBackend::cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets,
                                 std::span<float> nll, float softcap) {
  const auto rows = static_cast<std::size_t>(std::ranges::count_if(targets, [](auto target) { return target >= 0; }));
  timed(Operation::kHead, flops_of(rows, head), product_bytes(x, head),
        [&] { CpuBackend::cross_entropy(x, head, targets, nll, softcap); });
}

MachinePeaks measure_peaks(CpuBackend& backend) {
  constexpr std::size_t kSide = 2048, kCopied = std::size_t{256} << 20;
  constexpr int kRepeats = 5;
  MachinePeaks peaks;
  const auto weight =
      backend.make_weight({.rows = kSide, .columns = kSide, .read = [](std::size_t, std::size_t, std::span<float> out) {
                             std::iota(out.begin(), out.end(), 0.0F);
                             for (float& value : out) value = value / static_cast<float>(out.size()) - 0.5F;
                           }});
  const OperandBuffer x(backend, kSide, kSide);
  BackendTensor<float, 2> out(backend, {kSide, kSide});
  std::memset(x.get().data, 0, operand_bytes(backend, kSide, kSide));
  for (int n = 0; n <= kRepeats; ++n) {
    const double start = now();
    backend.linear(x.get(), *weight, out.view(), false);
    peaks.flops_per_second = std::max(peaks.flops_per_second, flops_of(kSide, *weight) / (now() - start));
  }
  std::vector<char> from(kCopied, 1), to(kCopied, 2);
  const auto threads = static_cast<std::size_t>(backend.threads()), part = kCopied / threads;
  for (int n = 0; n <= kRepeats; ++n) {
    const double start = now();
#pragma omp parallel for num_threads(backend.threads()) schedule(static, 1)
    for (std::size_t thread = 0; thread < threads; ++thread)
      std::memcpy(to.data() + thread * part, from.data() + thread * part, part);
    peaks.bytes_per_second =
        std::max(peaks.bytes_per_second, 2.0 * static_cast<double>(part * threads) / (now() - start));
  }
  return peaks;
}

void print_works(const OperationWorks& works, const MachinePeaks& peaks) {
  const OperationWork total = total_of(works);
  double bound_of_all = 0;
  std::printf("| operation | calls | seconds | share | GFLOP/s | GB/s | of bound |\n|---|---|---|---|---|---|---|\n");
  const auto row = [&](const char* name, const OperationWork& work, double bound) {
    std::printf("| %s | %zu | %.3f | %.1f %% | %.0f | %.1f | %.0f %% |\n", name, work.calls, work.seconds,
                100 * work.seconds / total.seconds, work.flops / work.seconds * 1e-9, work.bytes / work.seconds * 1e-9,
                100 * bound / work.seconds);
  };
  for (std::size_t n = 0; n < works.size(); ++n) {
    if (works[n].calls == 0) continue;
    const double bound = std::max(works[n].flops / peaks.flops_per_second, works[n].bytes / peaks.bytes_per_second);
    bound_of_all += bound;
    row(std::string(kOperationNames[n]).c_str(), works[n], bound);
  }
  row("all", total, bound_of_all);
}

}  // namespace kvs::bench
