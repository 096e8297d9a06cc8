// SPDX-License-Identifier: Apache-2.0
// GGUF files, values of keys about the model: N46 to N52.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tiny_gguf.h"
#include "tests/io/gguf_builder.h"

namespace kvs::testing {
namespace {

using namespace test::gguf_file;
using namespace std::string_literals;

std::string with_number(std::string_view name, std::uint64_t value) {
  TinyGguf model;
  model.set_key(name, kU32, u32(value));
  return model.bytes();
}

TEST_F(Catalogue, N46_NumbersOfLayers) {
  for (const std::uint64_t layers : {0UL, 0xffffffffUL}) {
    write("m.gguf", with_number("llama.block_count", layers));
    expect_model_refused(3, {"m.gguf", "llama.block_count", "found " + std::to_string(layers)}, "m.gguf");
  }
  write("m.gguf", with_number("llama.block_count", 3));
  expect_model_refused(3, {"m.gguf", "9 tensors are missing", "blk.2.attn_norm.weight"}, "m.gguf");
}

TEST_F(Catalogue, N47_NumbersOfHeads) {
  write("m.gguf", with_number("llama.attention.head_count", 0));
  expect_model_refused(3, {"m.gguf", "llama.attention.head_count", "found 0"}, "m.gguf");
  write("m.gguf", with_number("llama.attention.head_count_kv", 0));
  expect_model_refused(3, {"m.gguf", "llama.attention.head_count_kv", "found 0"}, "m.gguf");
  for (const std::uint64_t heads : {3UL, 8UL}) {
    write("m.gguf", with_number("llama.attention.head_count_kv", heads));
    expect_model_refused(3, {"m.gguf", "head_count 4", "head_count_kv " + std::to_string(heads)}, "m.gguf");
  }
}

TEST_F(Catalogue, N48_VocabulariesThatDoNotFit) {
  write("text.txt", std::string(40, 'a') + "bcab");
  Words words = capture_words("m.gguf");
  words[3] = "--text";
  words[4] = folder_ / "text.txt";
  const auto refuse = [&](const TinyGguf& model, int status, Parts parts) {
    write("m.gguf", model.bytes());
    expect_refused("kvspectrum", words, status, parts);
  };
  const auto with_tokens = [](const std::vector<std::string>& tokens) {
    TinyGguf model;
    const std::size_t count = tokens.size();
    model.set_key("tokenizer.ggml.tokens", kArray, array_of_texts(tokens));
    model.erase_key("tokenizer.ggml.scores");
    model.set_key("tokenizer.ggml.token_type", kArray, array(kI32, count, std::string(4 * count, '\1')));
    return model;
  };
  std::vector<std::string> tokens = tiny_vocabulary();
  tokens.pop_back();
  refuse(with_tokens(tokens), 3, {"m.gguf", "found 263 tokens, expected exactly the 264 rows"});
  tokens.insert(tokens.end(), {"x", "y"});
  refuse(with_tokens(tokens), 3, {"m.gguf", "found 265 tokens, expected exactly the 264 rows"});
  tokens = tiny_vocabulary();
  tokens[258] = "<0x-1>";
  refuse(with_tokens(tokens), 4, {"m.gguf", "found no token <0xFF>"});
  TinyGguf model;
  model.set_key("tokenizer.ggml.scores", kArray, array_of_texts(tiny_vocabulary()));
  refuse(model, 3, {"m.gguf", "tokenizer.ggml.scores", "expected an array of numbers"});
  model = TinyGguf();
  model.set_key("tokenizer.ggml.token_type", kArray, array_of_texts(tiny_vocabulary()));
  refuse(model, 3, {"m.gguf", "tokenizer.ggml.token_type", "expected an array of integers"});
  write("m.gguf", TinyGguf().bytes());
  expect_done("kvspectrum", words);
}

TEST_F(Catalogue, N49_Architectures) {
  TinyGguf model;
  model.erase_key("general.architecture");
  write("m.gguf", model.bytes());
  expect_model_refused(3, {"m.gguf", "general.architecture", "found nothing"}, "m.gguf");
  model.set_key("general.architecture", kString, text("mamba"));
  write("m.gguf", model.bytes());
  expect_model_refused(4, {"m.gguf", "general.architecture", "mamba", "docs/models.md"}, "m.gguf");
}

TEST_F(Catalogue, N50_OneOfTwoParts) {
  TinyGguf model;
  const auto u16 = [](std::uint16_t number) { return raw(number); };
  model.set_key("split.no", kU16, u16(0));
  model.set_key("split.count", kU16, u16(2));
  model.set_key("split.tensors.count", kI32, u32(model.tensors.size() + 1));
  write("m-00001-of-00002.gguf", model.bytes());
  expect_model_refused(4, {"m-00002-of-00002.gguf", "found nothing, expected part 2 of 2"}, "m-00001-of-00002.gguf");
}

TEST_F(Catalogue, N51_AQuantisationThatIsNotHandled) {
  TinyGguf model(256);  // two blocks a row
  TinyGguf::Tensor& keys = model.tensor("blk.0.attn_k.weight");
  keys.type = kTypeQ10;
  keys.bytes = std::string(std::size_t{16} * 2 * 18, '\1');
  write("m.gguf", model.bytes());
  expect_model_refused(4, {"m.gguf", "blk.0.attn_k.weight", "Q1_0"}, "m.gguf");
}

TEST_F(Catalogue, N52_ScalesOrActivationsThatAreNotFinite) {
  TinyGguf model;
  // 32 numbers of Q8_0 are a scale in f16 and 32 bytes.
  constexpr std::uint32_t kTypeQ80 = 8;
  std::string rows;
  for (int row = 0; row < 16; ++row) rows += (row == 5 ? "\x00\x7e"s : "\x00\x20"s) + std::string(32, '\1');
  model.tensor("blk.1.attn_v.weight") = {"blk.1.attn_v.weight", {32, 16}, kTypeQ80, rows};
  write("m.gguf", model.bytes());
  expect_model_refused(5, {"m.gguf", "blk.1.attn_v.weight", "found 32 values", "flat index 160"}, "m.gguf");

  model = TinyGguf();
  for (const char* name : {"blk.1.ffn_up.weight", "blk.1.ffn_gate.weight"}) {
    std::string& bytes = model.tensor(name).bytes;
    const std::size_t count = bytes.size() / sizeof(float);
    bytes.clear();
    for (std::size_t n = 0; n < count; ++n) bytes += raw(1e30F);
  }
  write("m.gguf", model.bytes());
  expect_model_refused(5, {"layer 1", "NaN or infinity"}, "m.gguf");
}

}  // namespace
}  // namespace kvs::testing
