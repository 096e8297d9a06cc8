// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "tests/bench/gpu_speed/session.h"
#include "tests/kernels/support.h"

namespace kvs::bench {
namespace {

/// Returns the seconds of the first call and of a later one; `out` is filled with the result.
std::pair<double, double> attention_seconds(Backend& backend, const ModelConfig& c, std::size_t tokens,
                                            std::vector<float>& out) {
  const auto states = [&](std::size_t heads, std::size_t from) {
    BackendTensor<float, 4> tensor(backend, {1, heads, tokens, c.head_dim()});
    std::vector<float> host(tensor.view().size());
    for (std::size_t n = 0; n < host.size(); ++n) host[n] = random_value(from + n);
    backend.upload(tensor.view().data(), host.data(), tensor.bytes());
    return tensor;
  };
  const std::size_t width = c.query_heads() * c.head_dim();
  const auto q = states(c.query_heads(), 1), k = states(c.kv_heads(), 2), v = states(c.kv_heads(), 3);
  const test::OwnedOperand result(backend, tokens, width);
  const AttentionInput input{
      .q = q.view(), .k = k.view(), .v = v.view(), .scale = 1 / std::sqrt(static_cast<float>(c.head_dim()))};
  const auto attend = [&](int times) {
    for (int n = 0; n < times; ++n) backend.attention(input, result);
    wait_for(backend, q.view().data());
  };
  const double first = seconds([&] { attend(1); });
  constexpr int kInFlight = 8;
  const double later = median_seconds(3, [&] { attend(kInFlight); }) / kInFlight;
  out = result.values();
  return {first, later};
}

}  // namespace

/// Only attention, f32 in, at the model's geometry without a window: our own kernel, and cuDNN's in bf16 on CUDA.
Json measure_attention(Session& s) {
  const ModelConfig& c = s.config();
  const auto tokens = static_cast<double>(s.tokens);
  const double flops = 4 * tokens * tokens / 2 * static_cast<double>(c.query_heads() * c.head_dim());
  const bool both = s.on_gpu() && s.backend->compute_type() == DType::kBF16;
  Json line = Json::object();
  std::vector<float> own, out;
  for (const std::string kernel : {"own", "cudnn"}) {
    if (kernel == "cudnn" && !both) continue;
    ::setenv("KVS_ATTENTION", kernel.c_str(), 1);
    const auto backend = make_backend(s.backend->device(), s.backend->compute_type());
    ::unsetenv("KVS_ATTENTION");
    try {
      const auto [first, later] = attention_seconds(*backend, c, s.tokens, out);
      line[kernel] = {{"seconds_first", first}, {"seconds", later}, {"tflops", flops / later / 1e12}};
      if (both) line[kernel]["note"] = cuda_attention_note(*backend);
    } catch (const Error& error) {
      if (kernel == "own" || error.code() != ErrorCode::kEnvironment) throw;
      line[kernel] = {{"note", error.what()}};
      continue;
    }
    if (kernel == "own") own = out;
    double difference = 0, square = 0;
    for (std::size_t n = 0; n < out.size(); ++n) {
      difference += std::pow(static_cast<double>(out[n]) - own[n], 2);
      square += std::pow(static_cast<double>(own[n]), 2);
    }
    // Both round weights and results to bf16, by at most 2^-9 each on average.
    check(square > 0 && std::sqrt(difference / square) < 0.01, "cuDNN's attention is not the own kernel's");
  }
  return line;
}

}  // namespace kvs::bench
