// SPDX-License-Identifier: Apache-2.0
// Prefill of one sequence and its GEMM-bound rate, both measured in this run.
//
// Usage: prefill_bench MODEL [tokens = 2048] [f32 | bf16] [repeats = 5] [--profile]
//
// --profile also prints the time of each operation with the rates that it reached, and the time of each kind of layer.
//
// GEMM-bound: the summed times of oneDNN's matrix products of every weight of the pass at its real shape (weights
// packed, head included). They include Q Kᵀ and P V as plain products of all queries with the mean number of keys that
// a query reads. Of a layer with experts: the products of every expert with an equal share of the tokens' choices. In
// bf16 on a processor without bf16 products these are f32 products, which compute the same sums.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/instruction_set.h"
#include "model/decoder.h"
#include "tests/bench/program.h"
#include "tests/bench/timed_backend.h"

namespace {

using kvs::ModelConfig;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The best times of products, each shape measured once.
class ProductTimes {
 public:
  ProductTimes(dnnl::memory::data_type type, int repeats) : type_(type), repeats_(repeats) {}

  /// Returns the best time of one [rows, inner] x [inner, columns] product, f32 output.
  double seconds_of(long rows, long columns, long inner) {
    const auto [found, is_new] = known_.try_emplace({rows, columns, inner});
    if (is_new) found->second = measure(rows, columns, inner);
    return found->second;
  }
  /// Returns the time of an MLP's products, gate and up in one.
  double mlp_seconds(long rows, long d, long ff) { return seconds_of(rows, 2 * ff, d) + seconds_of(rows, d, ff); }

 private:
  double measure(long rows, long columns, long inner) const {
    using dnnl::memory;
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    const memory::desc x(memory::dims{rows, inner}, type_, memory::format_tag::ab);
    const memory::desc w(memory::dims{inner, columns}, type_, memory::format_tag::any);
    const memory::desc y(memory::dims{rows, columns}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, y), engine);
    const dnnl::matmul product(description);
    memory from(description.src_desc(), engine), weight(description.weights_desc(), engine),
        to(description.dst_desc(), engine);
    std::fill_n(static_cast<char*>(from.get_data_handle()), from.get_desc().get_size(), 0);
    std::fill_n(static_cast<char*>(weight.get_data_handle()), weight.get_desc().get_size(), 0);
    double best = 1e9;
    for (int n = 0; n <= repeats_; ++n) {
      const double time = seconds([&] {
        product.execute(stream, {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, to}});
        stream.wait();
      });
      if (n > 0) best = std::min(best, time);
    }
    return best;
  }

  dnnl::memory::data_type type_;
  int repeats_;
  std::map<std::array<long, 3>, double> known_;
};

double feed_forward_seconds(const kvs::FeedForwardConfig& block, long tokens, long d, ProductTimes& times) {
  if (!block.is_sparse()) return times.mlp_seconds(tokens, d, static_cast<long>(block.d_ff));
  const kvs::ExpertsConfig& experts = block.experts;
  const auto count = static_cast<long>(experts.count);
  const long rows = std::max(1L, tokens * static_cast<long>(experts.chosen) / count);
  double sum = times.seconds_of(tokens, count, d) +
               static_cast<double>(count) * times.mlp_seconds(rows, d, static_cast<long>(experts.d_ff));
  if (experts.shared_d_ff > 0) sum += times.mlp_seconds(tokens, d, static_cast<long>(experts.shared_d_ff));
  return sum;
}

/// The summed times of a pass's products: with weights, and of attention.
struct Bound {
  double weights = 0, attention = 0;
  double seconds() const noexcept { return weights + attention; }
};

Bound gemm_bound(const ModelConfig& c, long tokens, ProductTimes& times) {
  const auto d = static_cast<long>(c.d_model);
  Bound bound{.weights = times.seconds_of(tokens, static_cast<long>(c.vocabulary), d)};
  for (const kvs::LayerConfig& layer : c.layer) {
    bound.weights += feed_forward_seconds(layer.feed_forward, tokens, d, times);
    if (!layer.has_attention()) continue;
    const kvs::AttentionConfig& attention = layer.attention;
    const auto head_dim = static_cast<long>(attention.head_dim), heads = static_cast<long>(attention.query_heads);
    const long rows = (heads + (attention.kv_layer ? 0 : 2 * static_cast<long>(attention.kv_heads))) * head_dim;
    bound.weights += times.seconds_of(tokens, rows, d) + times.seconds_of(tokens, d, heads * head_dim);
    std::size_t read = 0;
    for (std::size_t token = 0; token < static_cast<std::size_t>(tokens); ++token)
      read += token + 1 - kvs::oldest_read(token, attention.window, attention.chunk);
    const long keys = std::max(1L, static_cast<long>(read) / tokens);
    bound.attention += static_cast<double>(heads) *
                       (times.seconds_of(tokens, keys, head_dim) + times.seconds_of(tokens, head_dim, keys));
  }
  return bound;
}

/// Layers with the same sizes and the same reach.
struct LayerKind {
  std::size_t query_heads, kv_heads, head_dim, reach, d_ff;
  auto operator<=>(const LayerKind&) const = default;
};

/// Runs one more pass, layer by layer, and prints the table of its operations and the times of its layers.
void print_profile(const kvs::Model& model, kvs::bench::TimedBackend& backend, std::span<const std::int32_t> ids) {
  kvs::Decoder decoder(model);
  const kvs::bench::MachinePeaks peaks = kvs::bench::measure_peaks(backend);
  backend.clear_works();
  const ModelConfig& config = model.config();
  std::map<LayerKind, std::vector<std::pair<double, double>>> layers;  // seconds: whole layer, attention
  const auto start = std::chrono::steady_clock::now();
  kvs::ResidualStream hidden = decoder.embed(ids);
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    const auto attended = [&] {
      return backend.works()[static_cast<std::size_t>(kvs::bench::Operation::kAttention)].seconds;
    };
    const double before = attended(), whole = seconds([&] { decoder.advance(hidden, layer + 1); });
    const kvs::AttentionConfig& attention = config.layer[layer].attention;
    layers[{attention.query_heads, attention.kv_heads, attention.head_dim, attention.reach(),
            config.layer[layer].feed_forward.d_ff}]
        .emplace_back(whole, attended() - before);
  }
  std::vector<std::int32_t> targets(ids.begin() + 1, ids.end());
  targets.push_back(-1);
  decoder.nll(hidden, targets);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  std::printf("peaks of this run: products %.0f GFLOP/s, copy %.1f GB/s\n\n", peaks.flops_per_second * 1e-9,
              peaks.bytes_per_second * 1e-9);
  print_works(backend.works(), peaks);
  std::printf("\nof %.3f s, %.3f s are outside operations\n\n", whole.count(),
              whole.count() - total_of(backend.works()).seconds);
  std::printf("| layers | query heads | KV heads | head_dim | reach | d_ff | ms per layer | of it attention |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const auto& [kind, times] : layers) {
    double sum = 0, attention = 0;
    for (const auto& [one, part] : times) sum += one, attention += part;
    const auto count = static_cast<double>(times.size());
    std::printf("| %zu | %zu | %zu | %zu | %s | %zu | %.1f | %.1f |\n", times.size(), kind.query_heads, kind.kv_heads,
                kind.head_dim, kind.reach > 0 ? std::to_string(kind.reach).c_str() : "all", kind.d_ff,
                1e3 * sum / count, 1e3 * attention / count);
  }
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool profile = std::erase(arguments, "--profile") > 0;
  const auto argument = [&](std::size_t n, const char* fallback) {
    return n < arguments.size() ? arguments[n] : std::string(fallback);
  };
  const long tokens = std::stol(argument(1, "2048"));
  const bool bf16 = argument(2, "f32") == "bf16";
  const int repeats = std::stoi(argument(3, "5"));
  kvs::bench::TimedBackend backend(bf16 ? kvs::DType::kBF16 : kvs::DType::kF32, 0);
  const auto source = kvs::ModelSource::open(arguments.at(0));
  const kvs::Model model(*source, backend);
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
    if (n > 0 || repeats == 0) best = std::min(best, time);
  }
  ProductTimes products(bf16 && kvs::has_bf16_products() ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32,
                        std::max(repeats, 1));
  const Bound bound = gemm_bound(source->config(), tokens, products);
  const auto count = static_cast<double>(tokens);
  std::printf(
      "kvspectrum %s %s T=%ld: %.3f s, %.0f tokens/s; GEMM-bound %.3f s (%.3f of attention), %.0f tokens/s; "
      "ratio %.3f\n",
      std::string(kvs::name_of(kvs::instruction_set())).c_str(), bf16 ? "bf16" : "f32", tokens, best, count / best,
      bound.seconds(), bound.attention, count / bound.seconds(), bound.seconds() / best);
  if (profile) print_profile(model, backend, ids);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 1, "prefill_bench MODEL [tokens] [f32|bf16] [repeats] [--profile]", run);
}
