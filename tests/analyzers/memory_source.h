// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "kernels/cpu/spectral_ops.h"
#include "states/state_source.h"

namespace kvs {

/// A backend with only memory and spectra: analyses of given states need no more.
class MemoryBackend final : public Backend {
 public:
  std::string_view device() const noexcept override { return "cpu"; }
  DType compute_type() const noexcept override { return DType::kF32; }
  void* allocate(std::size_t bytes) override { return ::operator new(bytes); }
  void release(void* memory) noexcept override { ::operator delete(memory); }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memmove(to, from, bytes); }
  std::unique_ptr<Weight> make_weight(const WeightSource&) override { refuse(); }
  std::unique_ptr<SpectralOps> make_spectral_ops() override { return make_cpu_spectral_ops(); }
  void rms_norm(BackendView<const float, 2>, BackendView<const float, 1>, float, Operand) override { refuse(); }
  void rms_norm_add(BackendView<const float, 2>, BackendView<const float, 1>, float, BackendView<float, 2>) override {
    refuse();
  }
  void layer_norm(BackendView<const float, 2>, BackendView<const float, 1>, BackendView<const float, 1>, float,
                  Operand) override {
    refuse();
  }
  void norm_heads(BackendView<float, 4>, BackendView<const float, 1>, float) override { refuse(); }
  void linear(Operand, const Weight&, BackendView<float, 2>, bool) override { refuse(); }
  void linear_f32(BackendView<const float, 2>, const Weight&, BackendView<float, 2>, bool) override { refuse(); }
  void gather(Operand, std::span<const std::int32_t>, float, BackendView<float, 2>) override { refuse(); }
  void narrow(BackendView<const float, 2>, Operand) override { refuse(); }
  void split_heads(BackendView<const float, 2>, BackendView<float, 4>, BackendView<float, 4>,
                   BackendView<float, 4>) override {
    refuse();
  }
  void rope(BackendView<float, 4>, const RopeTable&, std::size_t, RopeDirection,
            std::span<const std::uint8_t>) override {
    refuse();
  }
  void attention(const AttentionInput&, Operand) override { refuse(); }
  void spectrum_attention(const AttentionInput&, const KeySpectrum&, Operand) override { refuse(); }
  void encode_rows(BackendView<const float, 4>, std::size_t, std::size_t, const StoredRows&, std::size_t) override {
    refuse();
  }
  void decode_rows(const StoredRows&, std::size_t, BackendView<float, 4>) override { refuse(); }
  void self_attention(const SelfAttentionInput&, Operand) override { refuse(); }
  void up_projection(Operand, const Weight&, Activation, Operand) override { refuse(); }
  void cross_entropy(Operand, const Weight&, std::span<const std::int32_t>, std::span<float>, float) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("MemoryBackend computes nothing"); }
};

/// States made by a function of (document, layer, kind, head, token, channel).
class MemorySource final : public StateSource {
 public:
  using Value = std::function<float(std::size_t document, std::size_t layer, StateKind state, std::size_t head,
                                    std::size_t token, std::size_t channel)>;
  MemorySource(std::size_t documents, std::size_t heads, std::size_t tokens, std::size_t head_dim, Value value)
      : documents_(documents), heads_(heads), tokens_(tokens), head_dim_(head_dim), value_(std::move(value)) {}

  std::size_t documents() const noexcept override { return documents_; }
  std::size_t tokens() const noexcept override { return tokens_; }
  Backend& backend() const noexcept override { return backend_; }
  RopeTable rope(std::size_t) const override { return {}; }
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override {
    for (const std::size_t layer : needs.layers) {
      ByState<std::vector<float>> values;
      DocumentStates out;
      out.document = document;
      out.layer = layer;
      for (const StateKind state : needs.states) {
        values[state] = make(document, layer, state);
        out[state] = {std::span<const float>(values[state]), {heads_, tokens_, head_dim_}};
      }
      sink(out);
    }
  }

 private:
  std::vector<float> make(std::size_t document, std::size_t layer, StateKind state) const {
    std::vector<float> values;
    for (std::size_t head = 0; head < heads_; ++head) {
      for (std::size_t token = 0; token < tokens_; ++token) {
        for (std::size_t channel = 0; channel < head_dim_; ++channel) {
          values.push_back(value_(document, layer, state, head, token, channel));
        }
      }
    }
    return values;
  }

  std::size_t documents_, heads_, tokens_, head_dim_;
  Value value_;
  mutable MemoryBackend backend_;
};

}  // namespace kvs
