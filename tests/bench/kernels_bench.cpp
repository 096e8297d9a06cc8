// SPDX-License-Identifier: Apache-2.0
// The CPU backend's operations at the shapes of SmolLM2-135M, 2,048 tokens, compared with plain oneDNN products of the
// same FLOPs. GFLOPS and GBps are those of the fastest iteration: other programs may share the machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <dnnl.hpp>

#include "kernels/backend.h"
#include "tests/kernels/held_rows.h"

namespace {

using kvs::Backend;
using kvs::BackendTensor;
using kvs::DType;
using kvs::test::OwnedOperand;
using kvs::test::random_values;
using kvs::test::uploaded;

constexpr std::size_t kTokens = 2048, kModel = 576, kQueryHeads = 9, kKvHeads = 3, kHeadDim = 64, kFeedForward = 1536;

DType type_of(const benchmark::State& state) { return state.range(0) == 0 ? DType::kF32 : DType::kBF16; }

/// Times every iteration and keeps the fastest.
template <class Work>
void best_of(benchmark::State& state, double amount, const char* unit, Work&& work) {
  double best = 1e30;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters[unit] = amount / best / 1e9;
  state.counters["best_ms"] = best * 1e3;
}

/// oneDNN alone: one primitive, all threads, the weight in oneDNN's preferred layout.
struct PlainProduct {
  PlainProduct(DType type, std::size_t m, std::size_t n, std::size_t k)
      : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    using dnnl::memory;
    const auto narrow = type == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
    const auto dims = [](std::size_t a, std::size_t b) {
      return memory::dims{static_cast<memory::dim>(a), static_cast<memory::dim>(b)};
    };
    const memory::desc x(dims(m, k), narrow, memory::format_tag::ab), w(dims(k, n), narrow, memory::format_tag::any),
        y(dims(m, n), memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, y), engine);
    product = dnnl::matmul(description);
    for (const auto& [slot, desc] :
         {std::pair(DNNL_ARG_SRC, description.src_desc()), std::pair(DNNL_ARG_WEIGHTS, description.weights_desc()),
          std::pair(DNNL_ARG_DST, description.dst_desc())}) {
      arguments.emplace(slot, memory(desc, engine));
      std::fill_n(static_cast<std::byte*>(arguments.at(slot).get_data_handle()), desc.get_size(), std::byte{});
    }
  }
  void operator()() {
    product.execute(stream, arguments);
    stream.wait();
  }
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::matmul product;
  std::unordered_map<int, dnnl::memory> arguments;
};

void plain_product(benchmark::State& state) {
  const auto m = static_cast<std::size_t>(state.range(1)), n = static_cast<std::size_t>(state.range(2)),
             k = static_cast<std::size_t>(state.range(3));
  PlainProduct product(type_of(state), m, n, k);
  product();
  best_of(state, 2.0 * static_cast<double>(m * n * k), "GFLOPS", [&] { product(); });
}

void linear(benchmark::State& state) {
  const auto m = static_cast<std::size_t>(state.range(1)), n = static_cast<std::size_t>(state.range(2)),
             k = static_cast<std::size_t>(state.range(3));
  const auto backend = kvs::make_backend("cpu", type_of(state));
  std::vector<float> w(n * k, 0.0F);
  for (std::size_t row = 0; row < n; ++row) w[row * k + row % k] = 2;  // then y[·, row] = 2 x[·, row mod k], exactly
  const auto weight = kvs::test::make_weight(*backend, w, n, k);
  const auto x = kvs::test::rounded(random_values(m * k, 1), type_of(state));
  const OwnedOperand operand(*backend, x, m, k);
  const BackendTensor<float, 2> out(*backend, {m, n});
  backend->linear(operand, *weight, out.view(), false);
  const auto values = download(*backend, out.view());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 2 * x[i / n * k + i % n % k]) return state.SkipWithError("wrong result");
  best_of(state, 2.0 * static_cast<double>(m * n * k), "GFLOPS",
          [&] { backend->linear(operand, *weight, out.view(), false); });
}

void attention(benchmark::State& state) {
  const auto tokens = static_cast<std::size_t>(state.range(1));
  const auto backend = kvs::make_backend("cpu", type_of(state));
  const auto q =
      uploaded<4>(*backend, random_values(kQueryHeads * tokens * kHeadDim, 1), {1, kQueryHeads, tokens, kHeadDim});
  const auto k = uploaded<4>(*backend, random_values(kKvHeads * tokens * kHeadDim, 2), {1, kKvHeads, tokens, kHeadDim});
  const auto v =
      uploaded<4>(*backend, std::vector<float>(kKvHeads * tokens * kHeadDim, 0.5F), {1, kKvHeads, tokens, kHeadDim});
  const OwnedOperand out(*backend, tokens, kQueryHeads * kHeadDim);
  const auto run = [&] { backend->attention({q.view(), k.view(), v.view(), {}, 0.125F, 0, 0}, out); };
  run();
  for (const float value : out.values())  // every mean of values that are all 0.5
    if (!(std::abs(value - 0.5F) < 2e-3F)) return state.SkipWithError("wrong result");
  // Two products, QKᵀ and PV, of 2 · tokens²/2 · head_dim FLOPs for each head.
  best_of(state, 2.0 * static_cast<double>(kQueryHeads * kHeadDim * tokens * tokens), "GFLOPS", run);
}

/// Two dense products per head of half the keys, with the same FLOPs.
void plain_attention_products(benchmark::State& state) {
  const auto tokens = static_cast<std::size_t>(state.range(1));
  PlainProduct scores(type_of(state), tokens, tokens / 2, kHeadDim), mix(type_of(state), tokens, kHeadDim, tokens / 2);
  best_of(state, 2.0 * static_cast<double>(kQueryHeads * kHeadDim * tokens * tokens), "GFLOPS", [&] {
    for (std::size_t head = 0; head < kQueryHeads; ++head) {
      scores();
      mix();
    }
  });
}

void cross_entropy(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(1)), n = static_cast<std::size_t>(state.range(2));
  const auto backend = kvs::make_backend("cpu", type_of(state));
  const auto weight = kvs::test::make_weight(*backend, std::vector<float>(n * kModel, 0.25F), n, kModel);
  const OwnedOperand x(*backend, random_values(rows * kModel, 1), rows, kModel);
  const std::vector<std::int32_t> targets(rows, 17);
  std::vector<float> nll(rows);
  backend->cross_entropy(x, *weight, targets, nll, 0);
  for (const float value : nll)  // all logits of a row are equal
    if (!(std::abs(value - std::log(static_cast<float>(n))) < 1e-4F)) return state.SkipWithError("wrong result");
  best_of(state, 2.0 * static_cast<double>(rows * n * kModel), "GFLOPS",
          [&] { backend->cross_entropy(x, *weight, targets, nll, 0); });
}

void rms_norm(benchmark::State& state) {
  const auto backend = kvs::make_backend("cpu", type_of(state));
  const auto x = uploaded<2>(*backend, std::vector<float>(kTokens * kModel, 3.0F), {kTokens, kModel});
  const auto gain = uploaded<1>(*backend, std::vector<float>(kModel, 0.5F), {kModel});
  const OwnedOperand out(*backend, kTokens, kModel);
  backend->rms_norm(x.view(), gain.view(), 0.0F, out);
  if (out.values()[5] != 0.5F) return state.SkipWithError("wrong result");
  best_of(state, static_cast<double>(kTokens * kModel * (4 + item_size(type_of(state)))), "GBps",
          [&] { backend->rms_norm(x.view(), gain.view(), 0.0F, out); });
}

void up_projection(benchmark::State& state) {
  const auto backend = kvs::make_backend("cpu", type_of(state));
  std::vector<float> w(2 * kFeedForward * kModel, 0.0F);  // gates and ups of 128, which SiLU keeps
  for (std::size_t row = 0; row < 2 * kFeedForward; ++row) w[row * kModel + row % kModel] = 2;
  const auto weight = kvs::test::make_weight(*backend, w, 2 * kFeedForward, kModel);
  const OwnedOperand x(*backend, std::vector<float>(kTokens * kModel, 64.0F), kTokens, kModel),
      out(*backend, kTokens, kFeedForward);
  backend->up_projection(x, *weight, kvs::Activation::kSilu, out);
  if (out.values()[5] != 128.0F * 128.0F) return state.SkipWithError("wrong result");
  best_of(state, 2.0 * static_cast<double>(kTokens * 2 * kFeedForward * kModel), "GFLOPS",
          [&] { backend->up_projection(x, *weight, kvs::Activation::kSilu, out); });
}

void split_and_rope(benchmark::State& state) {
  const auto backend = kvs::make_backend("cpu", DType::kF32);
  const std::size_t columns = (kQueryHeads + 2 * kKvHeads) * kHeadDim;
  const auto qkv = uploaded<2>(*backend, random_values(kTokens * columns, 1), {kTokens, columns});
  const BackendTensor<float, 4> q(*backend, {1, kQueryHeads, kTokens, kHeadDim}),
      k(*backend, {1, kKvHeads, kTokens, kHeadDim}), v(*backend, {1, kKvHeads, kTokens, kHeadDim});
  const auto cosine = uploaded<2>(*backend, std::vector<float>(kTokens * kHeadDim / 2, 0.0F), {kTokens, kHeadDim / 2});
  const auto sine = uploaded<2>(*backend, std::vector<float>(kTokens * kHeadDim / 2, 1.0F), {kTokens, kHeadDim / 2});
  const kvs::RopeTable table{cosine.view(), sine.view()};
  const auto run = [&] {
    backend->split_heads(qkv.view(), q.view(), k.view(), v.view());
    backend->rope(q.view(), table, 0, kvs::RopeDirection::kForward, {});
    backend->rope(k.view(), table, 0, kvs::RopeDirection::kForward, {});
  };
  run();
  // A quarter turn moves channel 0 of head 0 to channel 32.
  if (download(*backend, q.view())[32] != download(*backend, qkv.view())[0]) return state.SkipWithError("wrong result");
  best_of(state, static_cast<double>(kTokens * columns * 8 + kTokens * (kQueryHeads + kKvHeads) * kHeadDim * 8), "GBps",
          run);
}

/// Trellis codes of all values at one rate, by one thread.
void encode_trellis(benchmark::State& state) {
  constexpr std::size_t kRows = 16, kValues = 2 * kKvHeads * kHeadDim;
  const auto bits = static_cast<std::size_t>(state.range(0));
  const kvs::RowFormat format{.kind = kvs::RowKind::kTrellis, .group = static_cast<std::uint32_t>(bits * kValues)};
  const auto backend = kvs::make_backend("cpu", DType::kF32, 1);
  std::vector<float> tables = random_values(kvs::kTrellisBooks, 1);
  for (std::size_t n = 0; n < kValues; ++n) tables.insert(tables.end(), {0, 1, 1, static_cast<float>(bits)});
  const std::vector<float> values = random_values(kRows * kValues, 2);
  const auto run = [&] { return kvs::test::CodedRows(*backend, format, values, 1, kValues, tables); };
  const std::vector<float> held = download(*backend, run().decoded().view());
  double error = 0, energy = 0;
  for (std::size_t n = 0; n < values.size(); ++n) {
    error += std::pow(values[n] - held[n], 2);
    energy += std::pow(values[n], 2);
  }
  if (!(error < 0.5 * energy)) return state.SkipWithError("wrong result");
  best_of(state, static_cast<double>(values.size()), "Gvalues", run);
  state.counters["ns_a_value"] = 1 / state.counters["Gvalues"];
}

/// Decoding with one token of 8,192: many layers' rows in turn, so that they come from memory.
void attend_stored(benchmark::State& state) {
  constexpr std::size_t kPast = 8192, kLayers = 8;
  struct Layer {
    kvs::test::CodedRows k, v;
  };
  const auto kind = static_cast<kvs::RowKind>(state.range(0));
  const bool across = kind == kvs::RowKind::kKivi4 || kind == kvs::RowKind::kKivi2;
  const kvs::RowFormat values{.kind = kind, .group = across ? 32U : 0U};
  kvs::RowFormat keys = values;
  keys.across_tokens = across;
  const auto backend = kvs::make_backend("cpu", DType::kF32);
  const std::vector<float> rows = random_values(kKvHeads * kPast * kHeadDim, 1),
                           halves(kKvHeads * kPast * kHeadDim, 0.5F);
  std::vector<Layer> layers;
  for (std::size_t n = 0; n < kLayers; ++n)
    layers.push_back({{*backend, keys, rows, kKvHeads, kHeadDim}, {*backend, values, halves, kKvHeads, kHeadDim}});
  const auto q = uploaded<4>(*backend, random_values(kQueryHeads * kHeadDim, 2), {1, kQueryHeads, 1, kHeadDim});
  const auto k = uploaded<4>(*backend, random_values(kKvHeads * kHeadDim, 3), {1, kKvHeads, 1, kHeadDim});
  const auto v = uploaded<4>(*backend, std::vector<float>(kKvHeads * kHeadDim, 0.5F), {1, kKvHeads, 1, kHeadDim});
  const OwnedOperand out(*backend, 1, kQueryHeads * kHeadDim);
  const auto run = [&] {
    for (const Layer& layer : layers)
      backend->attention({q.view(), k.view(), v.view(), {layer.k.held(), layer.v.held()}, 0.125F, 0, 0}, out);
  };
  run();
  for (const float value : out.values())
    if (!(std::abs(value - 0.5F) < 4e-3F)) return state.SkipWithError("wrong result");
  best_of(state, 4.0 * static_cast<double>(kLayers * kQueryHeads * kPast * kHeadDim), "GFLOPS", run);
  state.counters["GBps"] =
      state.counters["GFLOPS"] / 4 / static_cast<double>(kQueryHeads * kPast * kHeadDim) *
      static_cast<double>(kKvHeads * (layers[0].k.held().bytes(kPast) + layers[0].v.held().bytes(kPast)));
}

void model_products(benchmark::internal::Benchmark* benchmark) {
  for (const int type : {0, 1})
    for (const auto& [n, k] : {std::pair(960, 576), {576, 576}, {3072, 576}, {576, 1536}})
      benchmark->Args({type, kTokens, n, k});
}

BENCHMARK(plain_product)->ArgNames({"bf16", "m", "n", "k"})->Apply(model_products)->UseRealTime();
BENCHMARK(linear)->ArgNames({"bf16", "m", "n", "k"})->Apply(model_products)->UseRealTime();
BENCHMARK(linear)
    ->ArgNames({"bf16", "m", "n", "k"})
    ->Args({0, 1, 49152, 576})
    ->Args({1, 1, 49152, 576})
    ->Args({1, 6, 49152, 576})
    ->UseRealTime();
BENCHMARK(plain_product)
    ->ArgNames({"bf16", "m", "n", "k"})
    ->Args({0, kTokens, 49152, 576})
    ->Args({1, kTokens, 49152, 576})
    ->UseRealTime();
BENCHMARK(cross_entropy)
    ->ArgNames({"bf16", "rows", "n"})
    ->Args({0, kTokens, 49152})
    ->Args({1, kTokens, 49152})
    ->UseRealTime();
BENCHMARK(plain_attention_products)
    ->ArgNames({"bf16", "tokens"})
    ->Args({0, kTokens})
    ->Args({1, kTokens})
    ->UseRealTime();
BENCHMARK(attention)->ArgNames({"bf16", "tokens"})->Args({0, kTokens})->Args({1, kTokens})->UseRealTime();
BENCHMARK(attend_stored)
    ->ArgName("kind")
    ->Arg(static_cast<int>(kvs::RowKind::kF32))
    ->Arg(static_cast<int>(kvs::RowKind::kBF16))
    ->Arg(static_cast<int>(kvs::RowKind::kQ8_0))
    ->Arg(static_cast<int>(kvs::RowKind::kQ4_0))
    ->Arg(static_cast<int>(kvs::RowKind::kKivi4))
    ->Arg(static_cast<int>(kvs::RowKind::kKivi2))
    ->UseRealTime();
BENCHMARK(rms_norm)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime();
BENCHMARK(up_projection)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime();
BENCHMARK(split_and_rope)->UseRealTime();
BENCHMARK(encode_trellis)->ArgName("bits")->DenseRange(1, 8)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  benchmark::AddCustomContext("commit", KVS_COMMIT);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
