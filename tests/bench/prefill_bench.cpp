// SPDX-License-Identifier: Apache-2.0
// Prefill of one sequence and its GEMM-bound rate, both measured in this run.
//
// Usage: prefill_bench MODEL [tokens = 2048] [f32 | bf16] [repeats = 5]
//
// GEMM-bound: the summed times of oneDNN's matrix products of every weight of the pass at its real shape (weights
// packed, head included). They include Q Kᵀ and P V as plain products at half of tokens² (the causal half). Of a layer
// with experts: the products of every expert with an equal share of the tokens' choices. In bf16 on a processor without
// bf16 products these are f32 products, which compute the same sums.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/instruction_set.h"
#include "model/decoder.h"
#include "tests/bench/program.h"

namespace {

using kvs::ModelConfig;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the best time of one [rows, inner] x [inner, columns] product, f32 output.
double product_seconds(dnnl::memory::dim rows, dnnl::memory::dim columns, dnnl::memory::dim inner,
                       dnnl::memory::data_type type, int repeats) {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc x(memory::dims{rows, inner}, type, memory::format_tag::ab);
  const memory::desc w(memory::dims{inner, columns}, type, memory::format_tag::any);
  const memory::desc y(memory::dims{rows, columns}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, y), engine);
  const dnnl::matmul product(description);
  memory from(description.src_desc(), engine), weight(description.weights_desc(), engine),
      to(description.dst_desc(), engine);
  std::fill_n(static_cast<char*>(from.get_data_handle()), from.get_desc().get_size(), 0);
  std::fill_n(static_cast<char*>(weight.get_data_handle()), weight.get_desc().get_size(), 0);
  double best = 1e9;
  for (int n = 0; n <= repeats; ++n) {
    const double time = seconds([&] {
      product.execute(stream, {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, to}});
      stream.wait();
    });
    if (n > 0) best = std::min(best, time);
  }
  return best;
}

/// Returns the time of an MLP's products, gate and up in one.
double mlp_seconds(long rows, long d, long ff, dnnl::memory::data_type type, int repeats) {
  return product_seconds(rows, 2 * ff, d, type, repeats) + product_seconds(rows, d, ff, type, repeats);
}

double feed_forward_seconds(const kvs::FeedForwardConfig& block, long tokens, long d, dnnl::memory::data_type type,
                            int repeats) {
  if (!block.is_sparse()) return mlp_seconds(tokens, d, static_cast<long>(block.d_ff), type, repeats);
  const kvs::ExpertsConfig& experts = block.experts;
  const auto count = static_cast<long>(experts.count);
  const long rows = std::max(1L, tokens * static_cast<long>(experts.chosen) / count);
  double sum = product_seconds(tokens, count, d, type, repeats) +
               static_cast<double>(count) * mlp_seconds(rows, d, static_cast<long>(experts.d_ff), type, repeats);
  if (experts.shared_d_ff > 0) sum += mlp_seconds(tokens, d, static_cast<long>(experts.shared_d_ff), type, repeats);
  return sum;
}

double gemm_bound_seconds(const ModelConfig& c, long tokens, dnnl::memory::data_type type, int repeats) {
  const auto d = static_cast<long>(c.d_model), width = static_cast<long>(c.query_heads() * c.head_dim());
  const auto qkv = static_cast<long>((c.query_heads() + 2 * c.kv_heads()) * c.head_dim());
  const auto half = tokens / 2, head_dim = static_cast<long>(c.head_dim());
  const double layer = product_seconds(tokens, qkv, d, type, repeats) +
                       product_seconds(tokens, d, width, type, repeats) +
                       feed_forward_seconds(c.layer.front().feed_forward, tokens, d, type, repeats);
  const double scores =
      product_seconds(half, tokens, head_dim, type, repeats) + product_seconds(half, head_dim, tokens, type, repeats);
  return static_cast<double>(c.layers()) * (layer + static_cast<double>(c.query_heads()) * scores) +
         product_seconds(tokens, static_cast<long>(c.vocabulary), d, type, repeats);
}

int run(int argc, char** argv) {
  const long tokens = argc > 2 ? std::atol(argv[2]) : 2048;
  const bool bf16 = argc > 3 && std::string(argv[3]) == "bf16";
  const int repeats = argc > 4 ? std::atoi(argv[4]) : 5;
  const auto backend = kvs::make_backend("cpu", bf16 ? kvs::DType::kBF16 : kvs::DType::kF32);
  const auto source = kvs::ModelSource::open(argv[1]);
  const kvs::Model model(*source, *backend);
  kvs::Decoder decoder(model);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  for (std::size_t n = 0; n < ids.size(); ++n) ids[n] = static_cast<std::int32_t>(n % 40000 + 100);

  double best = 1e9;
  for (int n = 0; n <= repeats; ++n) {
    std::vector<float> nll;
    const double time = seconds([&] { nll = kvs::document_nll(decoder, ids); });
    if (!std::all_of(nll.begin(), nll.end(), [](float value) { return std::isfinite(value); })) {
      std::fprintf(stderr, "prefill_bench: the NLL is not finite\n");
      return 5;
    }
    if (n > 0) best = std::min(best, time);
  }
  const double bound = gemm_bound_seconds(
      source->config(), tokens,
      bf16 && kvs::has_bf16_products() ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32, repeats);
  const auto count = static_cast<double>(tokens);
  std::printf("kvspectrum %s %s T=%ld: %.3f s, %.0f tokens/s; GEMM-bound %.3f s, %.0f tokens/s; ratio %.3f\n",
              std::string(kvs::name_of(kvs::instruction_set())).c_str(), bf16 ? "bf16" : "f32", tokens, best,
              count / best, bound, count / bound, bound / best);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 1, "prefill_bench MODEL [tokens] [f32|bf16] [repeats]", run);
}
