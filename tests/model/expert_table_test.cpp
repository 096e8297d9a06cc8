// SPDX-License-Identifier: Apache-2.0
#include "model/expert_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "model/decoder.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

using test::NamedTensor;
using Tensors = std::vector<NamedTensor>;

/// A golden model with experts, in the names of published files.
class ExpertNames : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { read(GetParam()); }
  void read(const std::string& name) {
    const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
    const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
    config_ = golden["config"];
    for (const auto& [tensor, shape] : golden["tensors"].items()) {
      const auto extents = shape.get<std::vector<std::uint64_t>>();
      tensors_.push_back(
          {tensor, extents, test::formula_weights(tensor, extents, config_["model_type"].get<std::string>())});
    }
  }

  std::vector<float> nll() {
    std::filesystem::create_directories(folder_ / "m");
    write_file_atomically(folder_ / "m" / "config.json", dump_json(config_), true);
    write_file_atomically(folder_ / "m" / "model.safetensors", test::safetensors_bytes(tensors_), true);
    const auto backend = make_backend("cpu", DType::kF32, 1);
    const auto source = ModelSource::open(folder_ / "m");
    EXPECT_THAT(source->notes(), testing::Each(testing::Not(testing::HasSubstr("not used"))));
    const Model model(*source, *backend);
    Decoder decoder(model);
    return document_nll(decoder, std::vector<std::int32_t>{7, 1, 99, 12, 12, 60, 130, 3});
  }

  test::TemporaryDirectory folder_;
  Json config_;
  Tensors tensors_;
};

void replace(std::string& text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

/// Returns the name that the class in Transformers 5 has for a tensor.
std::string own_name(std::string name, const std::string& model_type) {
  if (model_type == "mixtral" || model_type == "minimax_m2") replace(name, ".block_sparse_moe.", ".mlp.");
  replace(name, ".mlp.moe_statics.", ".mlp.gate.moe_statics.");
  if (name.starts_with("backbone.")) replace(name, "backbone.", "model.");
  replace(name, "block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj");
  replace(name, "block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj");
  replace(name, "block_sparse_moe.router.layer.weight", "block_sparse_moe.router.weight");
  return name;
}

/// The tensors of one layer's experts: [gate, up, down][expert].
using Parts = std::array<std::map<std::size_t, NamedTensor>, 3>;

NamedTensor joined(const std::string& name, const std::vector<const std::map<std::size_t, NamedTensor>*>& parts) {
  const NamedTensor& any = parts.front()->at(0);
  NamedTensor all{name, {parts.front()->size(), any.shape[0] * parts.size(), any.shape[1]}, {}};
  for (std::size_t expert = 0; expert < parts.front()->size(); ++expert)
    for (const auto* part : parts)
      all.values.insert(all.values.end(), part->at(expert).values.begin(), part->at(expert).values.end());
  return all;
}

/// Returns the model as Transformers 5 writes it with save_original_format=False: one tensor for all experts of a
/// layer.
Tensors in_own_names(const Tensors& published, const std::string& model_type) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kParts{
      {{"gate_proj.weight", "w1.weight"}, {"up_proj.weight", "w3.weight"}, {"down_proj.weight", "w2.weight"}}};
  Tensors own;
  std::map<std::string, Parts> experts;  // by the module of a layer's experts
  for (NamedTensor tensor : published) {
    tensor.name = own_name(tensor.name, model_type);
    const std::size_t at = tensor.name.find(".experts.");
    const std::size_t end = at == std::string::npos ? at : tensor.name.find('.', at + 9);
    if (end == std::string::npos) {
      own.push_back(tensor);
      continue;
    }
    const std::string_view part = std::string_view(tensor.name).substr(end + 1);
    const auto index = static_cast<std::size_t>(
        std::ranges::find_if(kParts, [&](const auto& names) { return part == names[0] || part == names[1]; }) -
        kParts.begin());
    experts[tensor.name.substr(0, at + 8)].at(index)[std::stoul(tensor.name.substr(at + 9))] = tensor;
  }
  for (const auto& [module, parts] : experts) {
    const auto& [gate, up, down] = parts;
    own.push_back(gate.empty() ? joined(module + ".up_proj", {&up}) : joined(module + ".gate_up_proj", {&gate, &up}));
    own.push_back(joined(module + ".down_proj", {&down}));
  }
  return own;
}

TEST_P(ExpertNames, OneTensorForAllGivesTheBitsOfOneForEach) {
  const std::vector<float> expected = nll();
  const Tensors own = in_own_names(tensors_, config_["model_type"].get<std::string>());
  EXPECT_LT(own.size(), tensors_.size() + 1);
  tensors_ = own;
  EXPECT_EQ(nll(), expected);
}

INSTANTIATE_TEST_SUITE_P(Families, ExpertNames,
                         testing::Values("mixtral", "qwen2_moe", "qwen3_moe", "qwen3_next", "olmoe", "glm4_moe",
                                         "ernie4_5_moe", "hunyuan_v1_moe", "minimax_m2", "lfm2_moe", "nemotron_h",
                                         "granitemoe", "granitemoehybrid"),
                         [](const auto& name) { return std::string(name.param); });

class Lfm2Experts : public ExpertNames {
 protected:
  void SetUp() override { read("lfm2_moe"); }
};

TEST_F(Lfm2Experts, AreChosenWithoutABiasIfTheConfigSaysSo) {
  const std::vector<float> biased = nll();
  for (NamedTensor& tensor : tensors_)
    if (tensor.name.ends_with(".expert_bias")) std::ranges::fill(tensor.values, 0.0F);
  const std::vector<float> expected = nll();
  EXPECT_NE(expected, biased);
  std::erase_if(tensors_, [](const NamedTensor& tensor) { return tensor.name.ends_with(".expert_bias"); });
  config_["use_expert_bias"] = false;
  EXPECT_EQ(nll(), expected);
}

}  // namespace
}  // namespace kvs
