// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "core/error.h"
#include "model/model.h"
#include "model/model_tensors.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using Shape = std::vector<std::uint64_t>;  // of a tensor, innermost axis first, as in the file

constexpr std::size_t kModel = 8, kExperts = 3, kWidth = 6, kVocabulary = 10;

/// A GGUF of one layer with experts. The values of a tensor are 0, 1, …
class StackedExperts : public testing::Test {
 protected:
  void add(const std::string& name, const Shape& shape) {
    std::size_t count = 1;
    for (const std::uint64_t length : shape) count *= length;
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0F);
    add_values(name + ".weight", shape, values);
  }

  void add_scale(const std::string& name, const std::vector<float>& scales) {
    add_values(name + ".scale", {scales.size()}, scales);
  }

  void add_values(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    parts_.tensors.push_back(test::gguf_file::tensor(name, shape, test::gguf_file::kTypeF32, parts_.data.size()));
    parts_.data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    parts_.data.resize((parts_.data.size() + parts_.alignment - 1) / parts_.alignment * parts_.alignment, '\0');
  }

  std::unique_ptr<ModelSource> open(const Shape& up, const std::string& up_name = "blk.0.ffn_up_exps") {
    add_keys();
    add("token_embd", {kModel, kVocabulary});
    add("output_norm", {kModel});
    add("output", {kModel, kVocabulary});
    for (const char* norm : {"blk.0.attn_norm", "blk.0.ffn_norm"}) add(norm, {kModel});
    for (const char* square : {"blk.0.attn_q", "blk.0.attn_output"}) add(square, {kModel, kModel});
    for (const char* narrow : {"blk.0.attn_k", "blk.0.attn_v"}) add(narrow, {kModel, kModel / 2});
    add("blk.0.ffn_gate_inp", {kModel, kExperts});
    add("blk.0.ffn_gate_exps", {kModel, kWidth, kExperts});
    add(up_name, up);
    add("blk.0.ffn_down_exps", {kWidth, kModel, kExperts});
    return ModelSource::open(folder_.write("model.gguf", test::gguf_file::gguf(parts_)));
  }

 private:
  void add_keys() {
    using namespace test::gguf_file;
    parts_.keys = {key("general.architecture", kString, text("llama")),
                   key("llama.attention.layer_norm_rms_epsilon", kF32, raw(1e-5F))};
    const auto number = [&](const std::string& name, std::size_t value) {
      parts_.keys.push_back(key("llama." + name, kU32, u32(value)));
    };
    number("block_count", 1);
    number("embedding_length", kModel);
    number("feed_forward_length", kWidth);
    number("attention.head_count", 2);
    number("attention.head_count_kv", 1);
    number("context_length", 64);
    number("vocab_size", kVocabulary);
    number("expert_count", kExperts);
    number("expert_used_count", 2);
  }

  test::TemporaryDirectory folder_;
  test::gguf_file::Parts parts_;
};

TEST_F(StackedExperts, AnExpertIsAPartOfTheTensor) {
  const auto source = open({kModel, kWidth, kExperts});
  ASSERT_EQ(source->tensors().experts(0), kExperts);
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    const TensorRows rows = source->tensors().rows(TensorRole::kExpertUp, 0, expert);
    ASSERT_EQ(rows.rows(), kWidth);
    std::vector<float> found(kModel), expected(kModel);
    rows.read(4, 1, found);
    std::iota(expected.begin(), expected.end(), static_cast<float>((expert * kWidth + 4) * kModel));
    EXPECT_EQ(found, expected) << expert;
  }
}

TEST_F(StackedExperts, GateAndUpMayBeOneTensor) {
  const auto source = open({kModel, 2 * kWidth, kExperts}, "blk.0.ffn_gate_up_exps");
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    std::vector<float> gate(kModel), up(kModel);
    source->tensors().rows(TensorRole::kExpertGate, 0, expert).read(4, 1, gate);
    source->tensors().rows(TensorRole::kExpertUp, 0, expert).read(4, 1, up);
    EXPECT_EQ(gate[0], static_cast<float>((2 * expert * kWidth + 4) * kModel)) << expert;
    EXPECT_EQ(up[0], static_cast<float>(((2 * expert + 1) * kWidth + 4) * kModel)) << expert;
  }
}

// As NVFP4 files have them; llama.cpp multiplies the products by them, whatever the type.
TEST_F(StackedExperts, ScalesMultiplyTheValuesOfATensorOrOfEachExpert) {
  add_scale("blk.0.ffn_up_exps", {2, 3, 4});
  add_scale("blk.0.attn_q", {0.5F});
  const auto source = open({kModel, kWidth, kExperts});
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    std::vector<float> found(kModel);
    source->tensors().rows(TensorRole::kExpertUp, 0, expert).read(4, 1, found);
    const auto first = static_cast<float>((expert * kWidth + 4) * kModel);
    EXPECT_EQ(found[0], first * static_cast<float>(2 + expert)) << expert;
    EXPECT_EQ(found[7], (first + 7) * static_cast<float>(2 + expert)) << expert;
  }
  EXPECT_EQ(source->projection(0, 'q')[kModel], 0.5F * 2 * kModel);  // row 1 of rotate-half order is row 2 of the file
  EXPECT_TRUE(source->notes().empty()) << source->notes().front();
}

TEST_F(StackedExperts, ScalesOfAnotherNumberAreRefused) {
  add_scale("blk.0.ffn_up_exps", {2, 3});
  test::expect_error(ErrorCode::kInput, "blk.0.ffn_up_exps.scale: found shape [2], expected [3, 1, 1]", [&] {
    open({kModel, kWidth, kExperts});
  });
}

TEST_F(StackedExperts, AWrongShapeIsRefusedWithItsKeys) {
  test::expect_error(ErrorCode::kInput, "tensor blk.0.ffn_up_exps.weight: found shape [4, 6, 8], expected [3, 6, 8]",
                     [&] {
                       open({kModel, kWidth, kExperts + 1});
                     });
}

TEST_F(StackedExperts, AMatrixInTheirPlaceIsRefused) {
  test::expect_error(ErrorCode::kInput, "found shape [18, 8], expected [3, 6, 8]", [&] {
    open({kModel, kWidth * kExperts});
  });
}

TEST_F(StackedExperts, AnOldFileHoldsEveryExpert) {
  test::expect_error(ErrorCode::kInput, "2 tensors are missing: blk.0.ffn_up.1.weight, blk.0.ffn_up.2.weight", [&] {
    open({kModel, kWidth}, "blk.0.ffn_up.0");
  });
}

}  // namespace
}  // namespace kvs
