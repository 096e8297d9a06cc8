// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "kernels/spectral_ops.h"

namespace kvs::bench {

/// Passes every operation on to another backend and marks a clock before it. The time of a pass is thus split into the
/// times of its operations, without a wait between them.
class MarkedBackend final : public Backend {
 public:
  explicit MarkedBackend(Backend& inner);

  void start();
  /// Returns the seconds by operation since start(), without gaps.
  std::map<std::string, double> stop();

  std::string_view device() const noexcept override { return inner_.device(); }
  DType compute_type() const noexcept override { return inner_.compute_type(); }
  void* allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  void release(void* memory) noexcept override { inner_.release(memory); }
  void upload(void* to, const void* from_host, std::size_t bytes) override { inner_.upload(to, from_host, bytes); }
  void download(void* to_host, const void* from, std::size_t bytes) override { inner_.download(to_host, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override;
  std::size_t memory_left() const override { return inner_.memory_left(); }
  std::size_t spare_threads() const override { return inner_.spare_threads(); }
  std::unique_ptr<Staging> make_staging(std::size_t values, DType type) override {
    return inner_.make_staging(values, type);
  }
  std::unique_ptr<SpectralOps> make_spectral_ops() override { return inner_.make_spectral_ops(); }
  std::unique_ptr<Weight> make_weight(const WeightSource& source) override { return inner_.make_weight(source); }
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
  void self_attention(const SelfAttentionInput& input, Operand out) override;
  void up_projection(Operand x, const Weight& weight, Activation activation, Operand out) override;
  void cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets, std::span<float> nll,
                     float softcap) override;

 private:
  void mark(const char* operation);

  Backend& inner_;
  std::unique_ptr<DeviceClock> clock_;
  bool marking_ = false;
  std::vector<const char*> operations_;  // one a mark
  const char* next_product_ = nullptr;   // the purpose of linear(), from the operation before it
};

}  // namespace kvs::bench
