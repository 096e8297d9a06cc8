// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/coding.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/coded_rows.h"
#include "kernels/cpu/heads.h"
#include "kernels/cpu/row_attention.h"
#include "kernels/cpu/tiled_product.h"

namespace kvs::inline kernels {
namespace {

class HostMemory final : public DeviceMemory {
 public:
  void* allocate(std::size_t bytes) override { return cpu::allocate_aligned(bytes); }
  void release(void* memory) noexcept override { cpu::release_aligned(memory); }
  void upload(void* to, const void* from_host, std::size_t bytes) override { copy(to, from_host, bytes); }
  void download(void* to_host, const void* from, std::size_t bytes) override { copy(to_host, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) std::memmove(to, from, bytes);
  }
};

}  // namespace

CpuCoding::CpuCoding(int threads)
    : threads_(threads),
      products_(cpu::make_panel_products(DType::kF32, static_cast<std::size_t>(threads))),
      scratch_(static_cast<std::size_t>(threads)) {}

DeviceMemory& CpuCoding::memory() noexcept {
  alignas(HostMemory) static std::byte place[sizeof(HostMemory)];
  static HostMemory* const memory = new (place) HostMemory;  // never destroyed: a caller's static codec frees to it
  return *memory;
}

std::unique_ptr<Weight> CpuCoding::make_weight(const WeightSource& source) {
  return cpu::pack_weight(*products_, source);
}

void CpuCoding::linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                           bool accumulate) {
  cpu::multiply_tiled(*products_, x.data(), x.extent(0), cpu::checked_weight(weight, x.extent(1), true), out,
                      accumulate, scratch_);
}

void CpuCoding::split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                            BackendView<float, 4> v) {
  cpu::split_heads(qkv, q, k, v, threads_);
}

void CpuCoding::encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                            const StoredRows& held, std::size_t at) {
  cpu::encode_rows(rows, first, count, held, at, scratch_);
}

void CpuCoding::decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) {
  cpu::decode_rows(held, first, out, scratch_);
}

void CpuCoding::rope(BackendView<float, 4> x, const RopeTable& table, RopeDirection direction) {
  cpu::rotate_heads(x, table, 0, direction, {}, threads_);
}

void CpuCoding::attend(const AttentionInput& input, BackendView<float, 2> out, std::span<float> log_sums) {
  cpu::require(input.q.extent(0) == 1 && input.q.extent(2) == 1 && log_sums.size() == input.q.extent(1), "attention",
               "a single token");
  cpu::few_tokens_attention(input, DType::kF32, {out.data(), 1, out.size()}, threads_, attention_scratch_, nullptr,
                            log_sums.data());
}

}  // namespace kvs::inline kernels
