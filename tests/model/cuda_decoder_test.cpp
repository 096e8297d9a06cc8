// SPDX-License-Identifier: Apache-2.0
// The forward pass of every architecture on both devices: faults between operations that the operations' own tests
// cannot show.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "tests/io/temporary_directory.h"
#include "tests/kernels/cuda_support.h"
#include "tests/model/caches.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"
#include "tests/model/recorded_keys.h"

namespace kvs::test {
namespace {

struct Pass {
  std::vector<float> keys, nll;  // keys of every layer before RoPE
};

/// A document whose first tokens are in the cache, the others as two members that share it.
Pass run_pass(Backend& backend, const ModelSource& source, std::span<const std::int32_t> tokens) {
  constexpr std::size_t kPast = 70;
  const Model model(source, backend);
  const std::size_t layers = model.config().layers();
  Decoder decoder(model);
  Cache cache = cache_of(model.config(), "full");
  ResidualStream past = decoder.embed(tokens.first(kPast), 0, tokens.size());
  decoder.advance(past, layers, nullptr, &cache);
  const ResidualStream one = decoder.embed(tokens.subspan(kPast), kPast);
  ResidualStream rest = decoder.repeat(one, 2);
  RecordedKeys recorded;
  decoder.advance(rest, layers, &recorded, &cache);
  std::vector<std::int32_t> targets(tokens.begin() + kPast + 1, tokens.end());
  targets.push_back(-1);
  // A pass without a hook keeps its states in another layout and gives the same bits.
  RecordedKeys looking;
  EXPECT_EQ(document_nll(decoder, tokens.first(kPast)), document_nll(decoder, tokens.first(kPast), &looking));
  Pass pass;
  pass.nll = decoder.nll(rest, targets);
  for (const std::vector<float>& layer : recorded.k_pre) pass.keys.insert(pass.keys.end(), layer.begin(), layer.end());
  return pass;
}

double norm(const std::vector<float>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

class CudaDecoder : public BothDevices, public testing::WithParamInterface<std::tuple<std::string, DType>> {
 protected:
  void SetUp() override { start(std::get<1>(GetParam())); }
};

TEST_P(CudaDecoder, GivesTheKeysAndTheLossOfTheCpu) {
  const auto& [name, type] = GetParam();
  const auto read = [](const std::string& file) {
    const std::filesystem::path path = golden_path("parity/" + file + ".json");
    return parse_json(read_text_file(path, 1 << 20), path.string());
  };
  const Json golden = read(name);
  auto tokens = read("tokens").get<std::vector<std::int32_t>>();
  tokens.resize(200);  // still more than any window (48) and any original context of a scaled RoPE (64)
  const TemporaryDirectory folder;
  write_formula_model(folder / "model", golden["config"], golden["tensors"]);
  const auto source = ModelSource::open(folder / "model");
  const auto [cpu, cuda] = both([&](Backend& backend) { return run_pass(backend, *source, tokens); });

  std::vector<float> difference(cpu.keys.size());
  std::ranges::transform(cuda.keys, cpu.keys, difference.begin(), std::minus());
  // In f32 two orders of summation: 1e-5 is ten times the difference between Transformers and the CPU. In bf16 each
  // layer's inputs are rounded three times, to 2^-9 on average, at places where the devices' f32 values differ
  // slightly.
  const bool narrow = type == DType::kBF16;
  EXPECT_LT(norm(difference), (narrow ? 1e-2 : 1e-5) * norm(cpu.keys));
  const double mean = std::accumulate(cpu.nll.begin(), cpu.nll.end(), 0.0) / static_cast<double>(cpu.nll.size());
  const double other = std::accumulate(cuda.nll.begin(), cuda.nll.end(), 0.0) / static_cast<double>(cuda.nll.size());
  EXPECT_NEAR(other, mean, narrow ? 2e-3 : 2e-5);
  expect_close(cuda.nll, cpu.nll, narrow ? 0.2 : 2e-4);
}

INSTANTIATE_TEST_SUITE_P(Golden, CudaDecoder,
                         testing::Combine(testing::Values("llama", "mistral", "qwen2", "qwen3", "phi3", "olmo2",
                                                          "gemma2", "gemma3", "gpt_neox"),
                                          testing::Values(DType::kF32, DType::kBF16)),
                         [](const auto& type) {
                           return std::get<0>(type.param) + "_" + type_name(std::get<1>(type.param));
                         });

}  // namespace
}  // namespace kvs::test
