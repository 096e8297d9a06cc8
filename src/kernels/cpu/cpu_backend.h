// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/spectrum_attention.h"

namespace kvs::cpu {
class PackedWeight;
}  // namespace kvs::cpu

namespace kvs::inline kernels {

/// The CPU backend: OpenMP over tiles, with a ProductEngine for the products inside the tiles (cpu/products.h). A row's
/// result depends neither on the number of threads nor on the other rows or members of the batch.
class CpuBackend : public Backend {
 public:
  /// @param threads  0: all processors.  @throws Error kUsage for a type other than f32 or bf16.
  CpuBackend(DType compute_type, int threads);

  std::string_view device() const noexcept override { return "cpu"; }
  DType compute_type() const noexcept override { return products_->type(); }
  int threads() const noexcept { return threads_; }

  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void copy_pieces(void* to, std::size_t to_stride, const void* from, std::size_t from_stride, std::size_t bytes,
                   std::size_t pieces) override;

  std::unique_ptr<Weight> make_weight(const WeightSource& source) override;
  std::unique_ptr<SpectralOps> make_spectral_ops() override;
  void rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon, Operand out) override;
  void rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                    BackendView<float, 2> sum) override;
  void layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, BackendView<const float, 1> bias,
                  float epsilon, Operand out) override;
  void norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) override;
  void layer_norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, BackendView<const float, 1> bias,
                        float epsilon) override;
  void clamp(BackendView<float, 4> x, float limit) override;
  void scale_tokens(BackendView<float, 4> x, std::span<const float> factors) override;
  void linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) override;
  void linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                  bool accumulate) override;
  void gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) override;
  void add_rows(BackendView<const float, 2> x, std::span<const std::int32_t> rows, std::span<const float> weights,
                BackendView<float, 2> sum) override;
  void narrow(BackendView<const float, 2> x, Operand out) override;
  void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                   BackendView<float, 4> v) override;
  void rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position, RopeDirection direction,
            std::span<const std::uint8_t> chunks) override;
  void attention(const AttentionInput& input, Operand out) override;
  bool attends_settling() const override { return true; }
  void spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, Operand out) override;
  void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count, const StoredRows& held,
                   std::size_t at) override;
  void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) override;
  void self_attention(const SelfAttentionInput& input, Operand out) override;
  void up_projection(Operand x, const Weight& weight, Activation activation, Operand out) override;
  void clamped_up_projection(Operand x, const Weight& weight, const SwigluClamp& clamp, Operand out) override;
  void sparse_up_projection(Operand x, const Weight& weight, Activation activation, float deviations,
                            Operand out) override;
  void convolve(const ConvolutionInput& input, BackendView<float, 2> out) override;
  void recur(const RecurrenceInput& input, BackendView<float, 2> out) override;
  void gate(const GateInput& input, Operand out) override;
  void gate_by_sigmoid(BackendView<const float, 2> gate, Operand x) override;
  void scale(BackendView<float, 2> x, float factor) override;
  void multiply(BackendView<const float, 2> factors, Operand x) override;
  void clear(BackendView<float, 2> x) override;
  void cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets, std::span<float> nll,
                     float softcap) override;

 private:
  using ChangeRows = std::function<void(const BackendView<float, 2>&)>;
  /// @param change  of rows [gate | up] before the activation, or nothing
  void project_up(Operand x, const Weight& weight, Activation activation, const ChangeRows& change, Operand out);
  /// Returns the engine of weights for linear_f32(), which is made at its first use. Every processor has panels, whose
  /// sums have one order, so that codes and decoded states of this project's codecs have the same bits everywhere.
  cpu::ProductEngine& f32_products();
  /// linear() for rows in the compute type.
  void multiply(const void* x, std::size_t rows, const cpu::PackedWeight& weight, BackendView<float, 2> out,
                bool accumulate);
  /// Makes one scratch buffer of this size per thread.
  void reserve_scratch(std::size_t bytes_per_thread);

  int threads_;
  std::unique_ptr<cpu::ProductEngine> products_;
  std::unique_ptr<cpu::ProductEngine> f32_products_;
  std::vector<cpu::AlignedBuffer> scratch_;  // [thread]
  cpu::AlignedBuffer packed_states_;         // attention: keys and values in the products' layout
  cpu::AlignedBuffer row_scratch_;           // attention of few tokens
  cpu::SpectrumAttention spectrum_;          // spectrum_attention: the part that reads the spectrum
  cpu::AlignedBuffer states_;                // self_attention: q, k and v
  cpu::AlignedBuffer projected_;             // up_projection: f32 [slab, weight rows]
};

}  // namespace kvs::inline kernels
