// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/tensor_archive.h"
#include "model/decoder.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

std::vector<float> nll_of(const std::filesystem::path& path) {
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto source = ModelSource::open(path);
  const Model model(*source, *backend);
  Decoder decoder(model);
  return document_nll(decoder, std::vector<std::int32_t>{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5});
}

/// Returns the name of a Llama's tensor in InternLM 2.
std::string renamed(std::string name) {
  const std::pair<const char*, const char*> names[] = {{"model.embed_tokens", "model.tok_embeddings"},
                                                       {"lm_head", "output"},
                                                       {"self_attn.o_proj", "attention.wo"},
                                                       {"input_layernorm", "attention_norm"},
                                                       {"post_attention_layernorm", "ffn_norm"},
                                                       {"mlp.gate_proj", "feed_forward.w1"},
                                                       {"mlp.up_proj", "feed_forward.w3"},
                                                       {"mlp.down_proj", "feed_forward.w2"}};
  for (const auto& [from, to] : names)
    if (const std::size_t at = name.find(from); at != std::string::npos) name.replace(at, std::string(from).size(), to);
  return name;
}

/// A Llama of four query heads on two KV heads, with its projections fused as in InternLM 2.
TEST(InternLm2, IsALlamaWhoseProjectionsAreFusedByKvHead) {
  const std::filesystem::path path = test::golden_path("parity/llama.json");
  const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
  const test::TemporaryDirectory folder;
  test::write_formula_model(folder / "llama", golden["config"], golden["tensors"]);
  const std::size_t columns = golden["config"]["hidden_size"].get<std::size_t>();
  constexpr std::size_t kKvHeads = 2, kGroup = 2;

  std::vector<test::NamedTensor> tensors;
  for (const auto& [name, shape] : golden["tensors"].items()) {
    const auto values = [&, stored = name](const char* other) {
      std::string wanted = stored;
      wanted.replace(wanted.find("q_proj"), 6, other);
      return test::formula_weights(wanted, golden["tensors"][wanted].get<std::vector<std::uint64_t>>(), "llama");
    };
    if (name.find("k_proj") != std::string::npos || name.find("v_proj") != std::string::npos) continue;
    if (name.find("q_proj") == std::string::npos) {
      const auto extents = shape.get<std::vector<std::uint64_t>>();
      tensors.push_back({renamed(name), extents, test::formula_weights(name, extents, "llama")});
      continue;
    }
    const std::vector<float> q = values("q_proj"), k = values("k_proj"), v = values("v_proj");
    std::vector<float> fused;
    const std::size_t size = k.size() / kKvHeads;  // of a head
    for (std::size_t head = 0; head < kKvHeads; ++head) {
      const auto part = [&](const std::vector<float>& from, std::size_t first, std::size_t count) {
        fused.insert(fused.end(), from.begin() + static_cast<std::ptrdiff_t>(first),
                     from.begin() + static_cast<std::ptrdiff_t>(first + count));
      };
      part(q, head * kGroup * size, kGroup * size);
      part(k, head * size, size);
      part(v, head * size, size);
    }
    std::string fused_name = name;
    fused_name.replace(fused_name.find("self_attn.q_proj"), 16, "attention.wqkv");
    tensors.push_back({fused_name, {fused.size() / columns, columns}, fused});
  }
  Json config = golden["config"];
  config["model_type"] = "internlm2";
  config["architectures"] = {"InternLM2ForCausalLM"};
  config["bias"] = false;
  std::filesystem::create_directories(folder / "internlm2");
  write_file_atomically(folder / "internlm2" / "config.json", dump_json(config), false);
  write_file_atomically(folder / "internlm2" / "model.safetensors", test::safetensors_bytes(tensors), false);
  EXPECT_EQ(nll_of(folder / "internlm2"), nll_of(folder / "llama"));
}

}  // namespace
}  // namespace kvs
