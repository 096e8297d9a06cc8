// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include "io/file.h"
#include "io/json.h"
#include "io/tensor_archive.h"
#include "tests/model/recorded_keys.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;

/// The results of Transformers in f32, eager attention (make_models.py).
class Expected {
 public:
  explicit Expected(const fs::path& folder)
      : json_(parse_json(read_text_file(folder / "expected.json", 1 << 20), (folder / "expected.json").string())),
        archive_(open_safetensors(folder / "expected.safetensors")) {}

  std::vector<std::int32_t> tokens() const { return json_.at("tokens").get<std::vector<std::int32_t>>(); }
  std::vector<std::size_t> rows() const { return json_.at("rows").get<std::vector<std::size_t>>(); }
  std::vector<float> values(const std::string& name) const {
    const StoredTensor* tensor = archive_->find(name);
    if (tensor == nullptr) return {};
    std::vector<float> values(tensor->rows() * tensor->columns());
    read_rows(*tensor, 0, tensor->rows(), values);
    return values;
  }

 private:
  Json json_;
  std::unique_ptr<TensorArchive> archive_;
};

double largest_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = found.size() == expected.size() && !found.empty() ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    largest = std::max(largest, std::abs(double{found[i]} - double{expected[i]}));
  }
  return largest;
}

double largest_value(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

/// One model on disk against the values of its folder.
class Parity : public testing::Test {
 public:
  Parity(fs::path folder, fs::path model) : folder_(std::move(folder)), model_path_(std::move(model)) {}

  void TestBody() override {
    const Expected expected(folder_);
    const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
    const std::unique_ptr<ModelSource> source = ModelSource::open(model_path_);
    const Model model(*source, *backend);
    Decoder decoder(model);
    ResidualStream hidden = decoder.embed(expected.tokens());
    test::RecordedKeys keys;
    decoder.advance(hidden, model.config().layers(), &keys);
    EXPECT_LE(largest_difference(decoder.logits(hidden, expected.rows()), expected.values("logits")), 1e-4);
    EXPECT_LE(largest_difference(document_nll(decoder, expected.tokens()), expected.values("nll")), 1e-4);
    for (std::size_t layer = 0; layer < model.config().layers(); ++layer) {
      const bool rotates = model.config().rope(layer).scaling.type != RopeScaling::Type::kNone;
      if (!rotates || !model.config().layer[layer].has_cache()) continue;
      compare("k_pre." + std::to_string(layer), keys.k_pre[layer], expected);
      compare("k_post." + std::to_string(layer), keys.k_post[layer], expected);
    }
  }

 private:
  /// To 1e-5 of the largest value: f32 sums of a few dozen terms round at about 1e-6 of it.
  static void compare(const std::string& name, const std::vector<float>& found, const Expected& expected) {
    const std::vector<float> values = expected.values(name);
    EXPECT_LE(largest_difference(found, values), 1e-5 * largest_value(values)) << name;
  }

  fs::path folder_, model_path_;
};

/// Prints that nothing was compared.
class NoModels : public testing::Test {
 public:
  void TestBody() override {
    GTEST_SKIP() << "KVS_PARITY_DIR is not set; scripts/parity.sh makes the models and sets it";
  }
};

void register_model(const std::string& name, const fs::path& folder, const fs::path& model) {
  testing::RegisterTest("Parity", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [folder, model]() -> testing::Test* { return new Parity(folder, model); });
}

void register_tests() {
  const char* const root = std::getenv("KVS_PARITY_DIR");
  if (root == nullptr || *root == '\0') {
    testing::RegisterTest("Parity", "NeedsModels", nullptr, nullptr, __FILE__, __LINE__,
                          []() -> testing::Test* { return new NoModels; });
    return;
  }
  std::set<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "expected.json")) folders.insert(entry.path());
  }
  for (const fs::path& folder : folders) {
    register_model(folder.filename().string(), folder, folder / "hf");
    if (fs::exists(folder / "model.gguf"))
      register_model(folder.filename().string() + "_gguf", folder, folder / "model.gguf");
  }
}

}  // namespace
}  // namespace kvs

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  kvs::register_tests();
  return RUN_ALL_TESTS();
}
