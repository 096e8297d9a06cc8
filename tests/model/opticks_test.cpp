// SPDX-License-Identifier: Apache-2.0
// SmolLM2-135M against Transformers on 512 tokens of Newton's Opticks (golden/cut_opticks.py). Needs the real model:
// KVS_MODEL=/path/to/SmolLM2-135M-Instruct.Q4_1.gguf.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "io/tensor_archive.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

std::vector<float> golden_tensor(const TensorArchive& archive, const std::string& name) {
  const StoredTensor* tensor = archive.find(name);
  if (tensor == nullptr) throw std::runtime_error("golden file lacks " + name);
  std::vector<float> values(tensor->rows() * tensor->columns());
  read_rows(*tensor, 0, tensor->rows(), values);
  return values;
}

/// Keeps every `stride`-th value of the states, as the golden file does.
class SampleHook final : public StateHook {
 public:
  void before_rope(LayerStates& states) override {
    sample(states, "q_pre", states.q, 111);
    sample(states, "k_pre", states.k, 37);
    sample(states, "v", states.v, 37);
  }
  void after_rope(LayerStates& states) override { sample(states, "k_post", states.k, 37); }

  std::map<std::string, std::vector<float>> samples;

 private:
  void sample(LayerStates& states, const std::string& kind, const BackendView<float, 4>& view, std::size_t stride) {
    const std::vector<float> values = download(states.backend, view);
    std::vector<float>& kept = samples[kind + "." + std::to_string(states.layer)];
    for (std::size_t i = 0; i < values.size(); i += stride) kept.push_back(values[i]);
  }
};

double relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(found[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

class Opticks : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("KVS_MODEL");
    if (path == nullptr) GTEST_SKIP() << "set KVS_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf to run this test";
    source_ = ModelSource::open(path);
    golden_ = open_safetensors(test::golden_path("opticks_smollm2.safetensors"));
    for (const float id : golden_tensor(*golden_, "tokens")) tokens_.push_back(static_cast<std::int32_t>(id));
  }
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<TensorArchive> golden_;
  std::vector<std::int32_t> tokens_;
};

TEST_F(Opticks, TextGivesTheTokens) {
  const std::string text = read_text_file(test::golden_path("opticks_smollm2.txt"), 1 << 20);
  const std::vector<std::int32_t> ids = source_->load_tokenizer()->encode(text);
  ASSERT_GE(ids.size(), tokens_.size());
  EXPECT_EQ(std::vector<std::int32_t>(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(tokens_.size())), tokens_);
}

TEST_F(Opticks, NllAndStatesEqualTransformers) {
  const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  const Model model(*source_, *backend);
  Decoder decoder(model);
  SampleHook hook;
  const std::vector<float> nll = document_nll(decoder, tokens_, &hook);
  const std::vector<float> expected = golden_tensor(*golden_, "nll");
  ASSERT_EQ(nll.size(), expected.size());
  for (std::size_t t = 0; t < nll.size(); ++t) EXPECT_NEAR(nll[t], expected[t], 1e-4) << "token " << t;
  for (const char* kind : {"q_pre", "k_pre", "k_post", "v"}) {
    for (const int layer : {0, 14, 29}) {
      const std::string name = std::string(kind) + "." + std::to_string(layer);
      const std::vector<float> states = golden_tensor(*golden_, name);
      ASSERT_EQ(hook.samples[name].size(), states.size()) << name;
      EXPECT_LE(relative_error(hook.samples[name], states), 1e-5) << name;
    }
  }
}

}  // namespace
}  // namespace kvs
