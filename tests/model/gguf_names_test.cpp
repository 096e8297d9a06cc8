// SPDX-License-Identifier: Apache-2.0
// Golden models written as GGUF files by the names of their families' tables, without a program of llama.cpp.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <stdexcept>

#include "io/gguf_writer.h"
#include "model/architecture.h"
#include "model/decoder.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

constexpr std::size_t kMostNumbers = 8;  // of layers, experts and streams

/// Returns the name in GGUF files of a tensor in Hugging Face files, and the expert that it is of.
std::pair<std::string, std::size_t> gguf_name(const Architecture& row, const std::string& hf) {
  std::vector<std::span<const TensorSpec>> tables{row.model_tensors, row.attention_tensors, row.feed_forward_tensors};
  if (row.experts != nullptr) tables.push_back(row.experts->tensors);
  for (const std::span<const TensorSpec> table : tables)
    for (const TensorSpec& spec : table)
      for (std::size_t layer = 0; layer < kMostNumbers; ++layer)
        for (std::size_t part = 0; part < kMostNumbers; ++part)
          if (with_number(with_number(spec.hf, layer), part) + std::string(spec.hf_ending) == hf)
            return {with_number(spec.gguf, layer) + std::string(spec.gguf_ending),
                    row.model_tensors.data() == table.data() ? layer : part};
  throw std::runtime_error("no tensor " + hf);
}

/// A golden model as a folder and as a GGUF file.
class GgufNames : public testing::Test {
 protected:
  struct Stacked {
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
  };

  void read(const std::string& name) {
    const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
    golden_ = parse_json(read_text_file(path, 1 << 20), path.string());
    config_ = golden_["config"];
    row_ = find_architecture_named(name);
  }
  std::vector<float> values_of(const std::string& tensor, const std::vector<std::uint64_t>& shape) const {
    return test::formula_weights(tensor, shape, config_["model_type"].get<std::string>());
  }
  /// Adds the keys of all architectures.
  void add_common(GgufMetadataWriter& keys, const std::string& architecture) const {
    const auto number = [&](const char* key, const char* member) {
      keys.add(architecture + "." + key, config_[member].get<std::uint32_t>());
    };
    keys.add("general.architecture", architecture);
    number("block_count", "num_hidden_layers");
    number("context_length", "max_position_embeddings");
    number("embedding_length", "hidden_size");
    number("attention.head_count", "num_attention_heads");
    number("attention.head_count_kv", "num_key_value_heads");
    number("attention.sliding_window", "sliding_window");
    keys.add(architecture + ".attention.layer_norm_rms_epsilon", config_["rms_norm_eps"].get<float>());
  }
  /// Adds the parts of tensors that a GGUF stacks, in ascending order of their numbers.
  void stack(std::map<std::string, Stacked>& tensors, const std::string& name, const std::vector<std::uint64_t>& shape,
             const std::vector<float>& values) const {
    Stacked& all = tensors[name];
    if (all.shape.empty()) all.shape = {0, shape[0], shape[1]};
    ++all.shape[0];
    all.values.insert(all.values.end(), values.begin(), values.end());
  }
  std::vector<float> nll(const std::filesystem::path& path) const {
    const auto backend = make_backend("cpu", DType::kF32, 1);
    const auto source = ModelSource::open(path);
    const Model model(*source, *backend);
    Decoder decoder(model);
    std::vector<std::int32_t> tokens(70);
    for (std::size_t n = 0; n < tokens.size(); ++n) tokens[n] = static_cast<std::int32_t>(n * 37 % 101);
    return document_nll(decoder, tokens);
  }
  static void write(const std::filesystem::path& path, const GgufMetadataWriter& keys,
                    std::vector<OutputTensor>& tensors) {
    write_file_atomically(path, "", true);
    write_gguf(path, keys, tensors);
  }

  test::TemporaryDirectory folder_;
  Json golden_, config_;
  const Architecture* row_ = nullptr;
};

TEST_F(GgufNames, OldFilesOfMixtralHaveATensorForEachExpert) {
  read("mixtral");
  const auto write_as = [&](const std::filesystem::path& path, bool each) {
    GgufMetadataWriter keys;
    add_common(keys, "llama");
    keys.add("llama.feed_forward_length", config_["intermediate_size"].get<std::uint32_t>());
    keys.add("llama.expert_count", config_["num_local_experts"].get<std::uint32_t>());
    keys.add("llama.expert_used_count", config_["num_experts_per_tok"].get<std::uint32_t>());
    std::vector<OutputTensor> tensors;
    std::map<std::string, Stacked> experts;
    for (const auto& [hf, extents] : golden_["tensors"].items()) {
      const auto shape = extents.get<std::vector<std::uint64_t>>();
      auto [name, expert] = gguf_name(*row_, hf);
      const std::size_t at = name.find("_exps.");
      if (at != std::string::npos && each) name.replace(at, 6, "." + std::to_string(expert) + ".");
      if (at != std::string::npos && !each)
        stack(experts, name, shape, values_of(hf, shape));
      else
        tensors.push_back(held_tensor(name, shape, values_of(hf, shape)));
    }
    for (const auto& [name, all] : experts) tensors.push_back(held_tensor(name, all.shape, all.values));
    write(path, keys, tensors);
  };
  write_as(folder_ / "merged.gguf", false);
  write_as(folder_ / "each.gguf", true);
  EXPECT_EQ(nll(folder_ / "each.gguf"), nll(folder_ / "merged.gguf"));
}

TEST_F(GgufNames, Gemma3nStacksTheProjectionsOfItsStreams) {
  read("gemma3n");
  test::write_formula_model(folder_ / "m", config_, golden_["tensors"]);
  GgufMetadataWriter keys;
  add_common(keys, "gemma3n");
  keys.add("gemma3n.feed_forward_length", std::span<const std::int32_t>(std::array{56, 40, 56, 48}));
  keys.add("gemma3n.attention.key_length", std::uint32_t{16});
  keys.add("gemma3n.attention.value_length", std::uint32_t{16});
  keys.add("gemma3n.attention.sliding_window_pattern", std::uint32_t{2});
  keys.add("gemma3n.attention.shared_kv_layers", std::uint32_t{2});
  keys.add("gemma3n.rope.freq_base", 1e6F);
  keys.add("gemma3n.rope.freq_base_swa", 1e4F);
  keys.add("gemma3n.altup.num_inputs", std::uint32_t{3});
  keys.add("gemma3n.embedding_length_per_layer_input", std::uint32_t{8});
  const float none = -std::numeric_limits<float>::infinity();
  keys.add("gemma3n.activation_sparsity_scale",
           std::span<const float>(std::array{1.64485363F, none, 0.0F, none}));  // shares 0.95, 0, 0.5, 0
  std::vector<OutputTensor> tensors;
  std::map<std::string, Stacked> streams;
  for (const auto& [hf, extents] : golden_["tensors"].items()) {
    const auto shape = extents.get<std::vector<std::uint64_t>>();
    const std::string name = gguf_name(*row_, hf).first;
    if (name.starts_with("altup_"))
      stack(streams, name, shape, values_of(hf, shape));
    else
      tensors.push_back(held_tensor(name, shape, values_of(hf, shape)));
  }
  EXPECT_EQ(streams.size(), 2U);
  for (const auto& [name, all] : streams) tensors.push_back(held_tensor(name, all.shape, all.values));
  write(folder_ / "m.gguf", keys, tensors);
  const std::vector<float> expected = nll(folder_ / "m"), found = nll(folder_ / "m.gguf");
  for (std::size_t n = 0; n < expected.size(); ++n) ASSERT_NEAR(found[n], expected[n], 1e-5) << n;
}

}  // namespace
}  // namespace kvs
