// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gpu_speed/marked_backend.h"

#include <chrono>

#include "tests/bench/gpu_speed/session.h"

namespace kvs::bench {
namespace {

/// transformers_profile.py has the same names.
constexpr const char *kNorms = "norms", *kQkv = "qkv product", *kAttention = "heads, RoPE, attention",
                     *kOutput = "output product", *kRaise = "gate and up products, activation", *kDown = "down product",
                     *kRest = "rest", *kEmbedding = "embedding", *kHead = "head";

/// For a backend whose operations are complete when they return.
class HostClock final : public DeviceClock {
 public:
  void mark() override { marks_.push_back(std::chrono::steady_clock::now()); }
  std::vector<double> seconds() override {
    std::vector<double> times;
    for (std::size_t n = 1; n < marks_.size(); ++n)
      times.push_back(std::chrono::duration<double>(marks_[n] - marks_[n - 1]).count());
    marks_.clear();
    return times;
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> marks_;
};

}  // namespace

MarkedBackend::MarkedBackend(Backend& inner) : inner_(inner) {
  if (inner.device() == "cuda")
    clock_ = make_cuda_clock(inner);
  else
    clock_ = std::make_unique<HostClock>();
}

void MarkedBackend::start() {
  marking_ = true;
  mark(kEmbedding);
}

std::map<std::string, double> MarkedBackend::stop() {
  clock_->mark();
  marking_ = false;
  const std::vector<double> times = clock_->seconds();
  check(times.size() == operations_.size(), "a mark was lost");
  std::map<std::string, double> sums;
  for (std::size_t n = 0; n < times.size(); ++n) sums[operations_[n]] += times[n];
  operations_.clear();
  return sums;
}

void MarkedBackend::mark(const char* operation) {
  if (!marking_) return;
  clock_->mark();
  operations_.push_back(operation);
}

void MarkedBackend::copy(void* to, const void* from, std::size_t bytes) {
  mark(kRest);
  inner_.copy(to, from, bytes);
}

void MarkedBackend::rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                             Operand out) {
  mark(kNorms);
  inner_.rms_norm(x, gain, epsilon, out);
}

void MarkedBackend::rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                                 BackendView<float, 2> sum) {
  mark(kNorms);
  inner_.rms_norm_add(x, gain, epsilon, sum);
}

void MarkedBackend::layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain,
                               BackendView<const float, 1> bias, float epsilon, Operand out) {
  mark(kNorms);
  inner_.layer_norm(x, gain, bias, epsilon, out);
}

void MarkedBackend::norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) {
  mark(kNorms);
  inner_.norm_heads(x, gain, epsilon);
}

void MarkedBackend::linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) {
  mark(next_product_);
  next_product_ = kQkv;
  inner_.linear(x, weight, out, accumulate);
}

void MarkedBackend::linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                               bool accumulate) {
  inner_.linear_f32(x, weight, out, accumulate);
}

void MarkedBackend::gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) {
  mark(kEmbedding);
  next_product_ = kQkv;
  inner_.gather(table, rows, scale, out);
}

void MarkedBackend::narrow(BackendView<const float, 2> x, Operand out) {
  mark(kRest);
  inner_.narrow(x, out);
}

void MarkedBackend::split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                                BackendView<float, 4> v) {
  mark(kAttention);
  inner_.split_heads(qkv, q, k, v);
}

void MarkedBackend::rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position,
                         RopeDirection direction, std::span<const std::uint8_t> chunks) {
  mark(kAttention);
  inner_.rope(x, table, first_position, direction, chunks);
}

void MarkedBackend::attention(const AttentionInput& input, Operand out) {
  mark(kAttention);
  next_product_ = kOutput;
  inner_.attention(input, out);
}

void MarkedBackend::spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, Operand out) {
  mark(kAttention);
  next_product_ = kOutput;
  inner_.spectrum_attention(input, spectrum, out);
}

void MarkedBackend::encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                                const StoredRows& held, std::size_t at) {
  mark(kAttention);
  inner_.encode_rows(rows, first, count, held, at);
}

void MarkedBackend::decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) {
  mark(kAttention);
  inner_.decode_rows(held, first, out);
}

void MarkedBackend::self_attention(const SelfAttentionInput& input, Operand out) {
  mark(kAttention);
  next_product_ = kOutput;
  inner_.self_attention(input, out);
}

void MarkedBackend::up_projection(Operand x, const Weight& weight, Activation activation, Operand out) {
  mark(kRaise);
  next_product_ = kDown;
  inner_.up_projection(x, weight, activation, out);
}

void MarkedBackend::cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets,
                                  std::span<float> nll, float softcap) {
  if (!operations_.empty() && operations_.back() == kNorms) operations_.back() = kHead;  // not a layer's
  mark(kHead);
  inner_.cross_entropy(x, head, targets, nll, softcap);
}

}  // namespace kvs::bench
