// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"
#include "model/model.h"
#include "tests/io/sanitizer.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

constexpr std::size_t kMebibyte = 1UL << 20;
constexpr std::size_t kModel = 1024, kFeedForward = 4096, kLayers = 8, kVocabulary = 16384, kHeadDim = 64;

/// A bf16 Llama of zeros in Hugging Face form, whose data are a hole in the file: about 350 MB that take no disk space.
void write_sparse_model(const std::filesystem::path& folder) {
  std::ofstream(folder / "config.json") << Json{
      {"architectures", {"LlamaForCausalLM"}},
      {"hidden_size", kModel},
      {"intermediate_size", kFeedForward},
      {"num_hidden_layers", kLayers},
      {"num_attention_heads", kModel / kHeadDim},
      {"num_key_value_heads", kModel / kHeadDim},
      {"vocab_size", kVocabulary},
      {"max_position_embeddings", 128},
      {"rms_norm_eps", 1e-5},
      {"hidden_act", "silu"}}.dump();
  Json header = Json::object();
  std::size_t bytes = 0;
  const auto add = [&](const std::string& name, const std::vector<std::size_t>& shape) {
    std::size_t size = 2;
    for (const std::size_t extent : shape) size *= extent;
    header[name + ".weight"] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {bytes, bytes + size}}};
    bytes += size;
  };
  add("model.embed_tokens", {kVocabulary, kModel});
  add("lm_head", {kVocabulary, kModel});
  add("model.norm", {kModel});
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const char* name : {"input_layernorm", "post_attention_layernorm"}) add(prefix + name, {kModel});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(prefix + "self_attn." + name, {kModel, kModel});
    for (const char* name : {"gate_proj", "up_proj"}) add(prefix + "mlp." + name, {kFeedForward, kModel});
    add(prefix + "mlp.down_proj", {kModel, kFeedForward});
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length) << text;
  file.close();
  std::filesystem::resize_file(folder / "model.safetensors", sizeof length + text.size() + bytes);
}

/// VmHWM or VmRSS of /proc/self/status in bytes.
std::size_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kibibytes = 0;
    if (word == key && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

// A 7B model in bf16 must load within its own size and 1 GiB, so neither the mapped files nor a widened copy of a
// tensor may stay resident in addition to the packed weights. Here the allowance is 64 MiB: a quarter of the file, and
// below the 128 MiB that an f32 copy of the embedding takes together with the libraries.
TEST(LoadMemory, HoldsNeitherTheFileNorWidenedTensorsBesideTheWeights) {
  if (test::sanitized()) GTEST_SKIP() << "AddressSanitizer keeps freed memory";
  const test::TemporaryDirectory folder;
  write_sparse_model(folder.path());
  const auto backend = make_backend("cpu", DType::kBF16);
  const auto source = ModelSource::open(folder.path());
  EXPECT_EQ(source->sha256().size(), 64U);        // reads the whole file, as commands do before they load
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
  const std::size_t before = status_bytes("VmRSS:");
  const Model model(*source, *backend);
  const std::size_t growth = status_bytes("VmHWM:") - before, weights = model.weight_bytes();
  ASSERT_GT(weights, 256 * kMebibyte);
  EXPECT_GT(growth, weights / 2) << "the peak was not measured";
  EXPECT_LT(growth, weights + 64 * kMebibyte);
  EXPECT_LT(before, 128 * kMebibyte) << "the digest kept the file's pages";
}

}  // namespace
}  // namespace kvs
