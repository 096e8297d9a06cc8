// SPDX-License-Identifier: Apache-2.0
// Power spectra of SmolLM2-135M as the program computes them, forward pass included, against Transformers and SciPy
// (golden/make_spectrum.py). Needs the real model: KVS_MODEL=/path/to/SmolLM2-135M-Instruct.Q4_1.gguf.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "analyzers/spectrum.h"
#include "io/tensor_archive.h"
#include "states/live_source.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

std::vector<std::int32_t> golden_tokens() {
  const auto archive = open_safetensors(test::golden_path("opticks_smollm2.safetensors"));
  const StoredTensor* tensor = archive->find("tokens");
  std::vector<float> values(tensor->rows() * tensor->columns());
  read_rows(*tensor, 0, tensor->rows(), values);
  return {values.begin(), values.end()};
}

TEST(OpticksSpectrum, EveryLayerAndHeadEqualsTransformersAndScipy) {
  const char* path = std::getenv("KVS_MODEL");
  if (path == nullptr) GTEST_SKIP() << "set KVS_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf to run this test";
  const auto model_source = ModelSource::open(path);
  const auto backend = make_backend("cpu", DType::kF32);
  const Model model(*model_source, *backend);
  Decoder decoder(model);
  LiveSource source(decoder, {golden_tokens()});
  const auto ops = backend->make_spectral_ops();
  SpectrumAccumulator::Settings settings;
  for (std::size_t layer = 0; layer < model.config().layers(); ++layer) settings.layers.push_back(layer);
  settings.kv_heads = model.config().kv_heads();
  settings.head_dim = model.config().head_dim();
  SpectrumAccumulator accumulator(*ops, settings, source.tokens());
  ASSERT_TRUE(accumulator.add_document(source, 0));
  const Spectrum spectrum = accumulator.result();

  const std::string file = test::golden_path("spectrum_opticks512.json").string();
  const Json golden = parse_json(read_text_file(file, 1 << 24), file);
  const auto stride = golden["stride"].get<std::size_t>();
  for (const StateKind state : kSpectrumStates) {
    const PowerTable& table = spectrum.table(state, true);
    for (std::size_t layer = 0; layer < table.layers; ++layer) {
      for (std::size_t head = 0; head < table.heads[layer]; ++head) {
        const Json& expected = golden[std::string(name_of(state))][layer][head];
        ASSERT_EQ(expected.size(), (table.bins + stride - 1) / stride);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          // Two f32 forward passes agree to about 1e-6; the weakest bins keep 1e-4 of their power.
          EXPECT_NEAR(table.row(layer, head)[i * stride] / expected[i].get<double>(), 1, 1e-4)
              << name_of(state) << " layer " << layer << " head " << head << " bin " << i * stride;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvs
