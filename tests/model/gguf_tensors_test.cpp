// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "io/gguf_writer.h"
#include "model/model.h"
#include "tests/io/temporary_directory.h"

// Tensors that a GGUF lacks although its other layers, or all layers of its family, have them.
namespace kvs {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kLayers = 2, kWidth = 8, kRows = 10;

/// A GGUF of two layers with one head of 8 channels. The values of a tensor are 0.
class GgufTensors : public testing::Test {
 protected:
  using Shape = std::vector<std::uint64_t>;

  GgufTensors() {
    for (const char* whole : {"token_embd", "output"}) shapes_[whole + std::string(".weight")] = {kRows, kWidth};
    shapes_["output_norm.weight"] = {kWidth};
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      for (const char* norm : {"attn_norm.weight", "ffn_norm.weight"}) shapes_[block + norm] = {kWidth};
      for (const char* matrix : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
        shapes_[block + matrix + ".weight"] = {kWidth, kWidth};
    }
  }

  std::string refusal(const std::string& architecture) {
    GgufMetadataWriter keys;
    keys.add("general.architecture", architecture);
    for (const auto& [key, value] : std::map<std::string, std::uint32_t>{{"block_count", kLayers},
                                                                         {"context_length", 64},
                                                                         {"embedding_length", kWidth},
                                                                         {"feed_forward_length", kWidth},
                                                                         {"attention.head_count", 1},
                                                                         {"attention.head_count_kv", 1}})
      keys.add(architecture + "." + key, value);
    keys.add(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
    std::vector<OutputTensor> tensors;
    tensors.reserve(shapes_.size());
    for (const auto& [name, shape] : shapes_)
      tensors.push_back(
          held_tensor(name, shape, std::vector<float>(shape.size() > 1 ? shape[0] * shape[1] : shape[0])));
    const std::filesystem::path path = folder_.write("model.gguf", "");
    write_gguf(path, keys, tensors);
    try {
      (void)ModelSource::open(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      return error.what();
    }
    return "";
  }

  std::map<std::string, Shape> shapes_;
  test::TemporaryDirectory folder_;
};

TEST_F(GgufTensors, ABiasIsInAllLayersOrInNone) {
  EXPECT_EQ(refusal("llama"), "");
  shapes_["blk.1.attn_q.bias"] = {kWidth};
  EXPECT_THAT(refusal("llama"), HasSubstr("tensor blk.0.attn_q.weight: found no bias, expected one as in layer 1"));
  shapes_["blk.0.attn_q.bias"] = {kWidth};
  EXPECT_EQ(refusal("llama"), "");
}

TEST_F(GgufTensors, AFamilyOfExpertsHasNoOtherBlocks) {
  EXPECT_THAT(refusal("gpt-oss"),
              HasSubstr("model.gguf: found no experts in layer 0, expected experts in every layer of gpt_oss"));
}

}  // namespace
}  // namespace kvs
