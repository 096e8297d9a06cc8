// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/fused_attention.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/spectrum_attention.h"

namespace kvs::inline kernels {

/// One NVIDIA GPU of compute capability 8.0 or later. Operations are queued on one stream and return before they have
/// run; download() waits. The last bits of a row's result may depend on the number of rows, because cuBLASLt chooses by
/// shape.
class CudaBackend final : public Backend {
 public:
  /// @throws Error kUsage for a type other than f32 or bf16; kEnvironment without a usable device.
  explicit CudaBackend(DType compute_type);

  std::string_view device() const noexcept override { return "cuda"; }
  DType compute_type() const noexcept override { return type_; }
  const cuda::Context& context() const noexcept { return context_; }
  /// Returns which attention has run so far, and why.
  std::string attention_note() const { return fused_attention_.note(); }
  const CudaProducts& products() const noexcept { return gemm_.products(); }
  /// See cuda_gemm_trials().
  std::vector<CudaGemmTrial> gemm_trials(Operand x, const Weight& weight, DType y_type);

  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  std::size_t memory_left() const override { return context_.memory_left(); }
  std::size_t spare_threads() const override;

  std::unique_ptr<Staging> make_staging(std::size_t values, DType type) override;
  std::unique_ptr<Weight> make_weight(const WeightSource& source) override;
  std::unique_ptr<SpectralOps> make_spectral_ops() override;
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
  void spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, Operand out) override;
  void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count, const StoredRows& held,
                   std::size_t at) override;
  void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) override;
  std::size_t max_head_dim() const override;
  void self_attention(const SelfAttentionInput& input, Operand out) override;
  void up_projection(Operand x, const Weight& weight, Activation activation, Operand out) override;
  void cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets, std::span<float> nll,
                     float softcap) override;

 private:
  /// Returns a past as f32 rows, each in one part: itself, or a copy that is valid until the next call.
  PastKv plain_past(const PastKv& past);
  /// Copies rows in any form and in two parts to `memory`.
  StoredRows plain_rows(const StoredRows& early, const StoredRows& late, const RopeTable& slots,
                        cuda::DeviceArray<float>& memory);
  /// self_attention() without its last step: q, k and v in `scratch`.
  template <class T>
  cuda::AttentionArguments<T> split_for_attention(const SelfAttentionInput& input, cuda::DeviceArray<T>& scratch);
  void run_attention(const cuda::AttentionArguments<__nv_bfloat16>& arguments);

  DType type_;
  cuda::Context context_;
  cuda::GemmEngine gemm_;
  std::unique_ptr<cuda::GemmEngine> f32_gemm_;  // if gemm_ has another type, made at its first use
  cuda::FusedAttention fused_attention_;
  cuda::SpectrumAttention spectrum_attention_;
  cuda::DeviceArray<__nv_bfloat16> attention_operands_;  // q, k, v and the past of the last attention, if bf16
  cuda::DeviceArray<float> states_;                      // q, k and v of the last self_attention, if f32
  cuda::DeviceArray<float> past_k_, past_v_;             // past of the last attention, if it is stored in another form
  cuda::DeviceArray<float> logits_;         // cross_entropy: one tile of rows and one slice of the vocabulary
  cuda::DeviceArray<std::byte> projected_;  // up_projection: [row, weight rows] in the compute type
};

}  // namespace kvs::inline kernels
