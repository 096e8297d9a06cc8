// SPDX-License-Identifier: Apache-2.0
#include "io/element_type.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "io/digest.h"
#include "io/json.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using namespace test::gguf_file;

struct BlockType {
  const char* name;
  std::uint32_t number;  // ggml.h's enum ggml_type
};
void PrintTo(const BlockType& type, std::ostream* out) { *out << type.name; }

constexpr BlockType kBlockTypes[] = {{"Q8_0", 8},     {"Q4_0", 2},    {"Q4_1", 3},   {"Q5_0", 6},     {"Q5_1", 7},
                                     {"Q2_K", 10},    {"Q3_K", 11},   {"Q4_K", 12},  {"Q5_K", 13},    {"Q6_K", 14},
                                     {"IQ4_NL", 20},  {"IQ4_XS", 23}, {"MXFP4", 39}, {"IQ1_S", 19},   {"IQ1_M", 29},
                                     {"IQ2_XXS", 16}, {"IQ2_XS", 17}, {"IQ2_S", 22}, {"IQ3_XXS", 18}, {"IQ3_S", 21},
                                     {"TQ1_0", 34},   {"TQ2_0", 35},  {"NVFP4", 40}};

const Json& golden_blocks() {
  static const Json blocks = parse_json(test::read_all(KVS_GOLDEN_DIR "/gguf_blocks.json"), "gguf_blocks.json");
  return blocks;
}

/// The blocks drawn by tests/golden/make_gguf_blocks.py.
std::vector<std::byte> random_blocks(const ElementType& type, const Json& golden) {
  const auto count = golden.at("blocks").get<std::size_t>();
  std::vector<std::byte> bytes((count * type.block_bytes + 3) / 4 * 4);
  std::mt19937 random(20240607);
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(&bytes[at], &word, 4);
  }
  bytes.resize(count * type.block_bytes);
  for (const std::size_t scale : golden.at("scales").get<std::vector<std::size_t>>())
    for (std::size_t at = scale + 1; at < bytes.size(); at += type.block_bytes)
      if ((bytes[at] & std::byte{0x7c}) == std::byte{0x7c}) bytes[at] &= std::byte{0xbf};
  for (const Json& mask : golden.at("masks"))
    for (auto at = mask.at(0).get<std::size_t>(); at < bytes.size(); at += type.block_bytes)
      bytes[at] &= std::byte{mask.at(1).get<std::uint8_t>()};
  return bytes;
}

class ElementTypes : public ::testing::TestWithParam<BlockType> {};

// Expected bits: gguf.quants.dequantize of the Python package gguf 0.19.0 (tests/golden/make_gguf_blocks.py).
TEST_P(ElementTypes, DecodeRandomBlocksBitForBitAsGgufPy) {
  const ElementType* type = element_type_of_ggml(GetParam().number);
  ASSERT_NE(type, nullptr);
  ASSERT_EQ(type->name, GetParam().name);
  const Json& golden = golden_blocks().at(GetParam().name);
  const auto bytes = random_blocks(*type, golden);
  std::vector<float> values(bytes.size() / type->block_bytes * type->block_values);
  type->decode(bytes.data(), bytes.size() / type->block_bytes, values.data());
  const auto first = golden.at("first").get<std::vector<std::uint32_t>>();
  ASSERT_EQ(first.size(), type->block_values);
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), first[i]) << i << ": " << values[i];
  Sha256 digest;
  digest.update(std::as_bytes(std::span(values)));
  EXPECT_EQ(digest.finish(), golden.at("sha256").get<std::string>());
}

TEST_P(ElementTypes, AScaleThatIsNotFiniteShowsInTheNumbers) {
  const ElementType* type = element_type_of_ggml(GetParam().number);
  const Json& golden = golden_blocks().at(GetParam().name);
  for (const std::size_t scale : golden.at("scales").get<std::vector<std::size_t>>()) {
    auto bytes = random_blocks(*type, golden);
    bytes[scale] = std::byte{0};
    bytes[scale + 1] = std::byte{0x7e};  // 0x7e00: a quiet NaN
    std::vector<float> values(2 * type->block_values);
    type->decode(bytes.data(), 2, values.data());
    const auto is_nan = [](float value) { return std::isnan(value); };
    EXPECT_TRUE(std::any_of(values.begin(), values.begin() + type->block_values, is_nan)) << "scale at " << scale;
    EXPECT_TRUE(std::none_of(values.begin() + type->block_values, values.end(), is_nan));
  }
}

TEST(ElementTypesOfParts, AScaleInPartsThatIsNotFiniteShowsInTheNumbers) {
  const ElementType* type = element_type_of_ggml(29);  // IQ1_M: 0x7e00, a quiet NaN, in the upper halves of 4 words
  std::vector<std::byte> bytes(type->block_bytes);
  bytes[53] = std::byte{0xe0};
  bytes[55] = std::byte{0x70};
  std::vector<float> values(type->block_values);
  type->decode(bytes.data(), 1, values.data());
  EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isnan(value); }));
}

TEST_P(ElementTypes, ARowThatIsNoWholeNumberOfBlocksIsRefused) {
  const ElementType* type = element_type_of_ggml(GetParam().number);
  const std::uint64_t half = type->block_values / 2;
  for (const std::uint64_t columns : {half, 3 * half, std::uint64_t{1}}) {
    const std::string file =
        gguf({.tensors = {tensor("w", {columns, 2}, GetParam().number, 0)}, .data = std::string(1024, 'x')});
    test::expect_error(ErrorCode::kInput,
                       "expected a multiple of " + std::to_string(type->block_values) + " for " + GetParam().name,
                       [&] { parse(file); });
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, ElementTypes, ::testing::ValuesIn(kBlockTypes),
                         [](const auto& test_case) { return std::string(test_case.param.name); });

TEST(ElementTypeList, NamesEveryTypeThatIsTestedHereAndThePlainOnes) {
  const std::string names = decodable_ggml_types() + ",";
  for (const BlockType& type : kBlockTypes)
    EXPECT_NE(names.find(std::string(type.name) + ","), names.npos) << type.name;
  EXPECT_EQ(std::count(names.begin(), names.end(), ','), static_cast<std::ptrdiff_t>(std::size(kBlockTypes)) + 4);
  EXPECT_EQ(decodable_safetensors_types(), "F32, F16, BF16, F64, F8_E4M3, F8_E8M0");
}

TEST(GgufPlainTypes, WidenToF32) {
  const std::vector<std::tuple<std::uint32_t, const char*, std::string>> types = {
      {0, "F32", raw(-1.5F)},
      {1, "F16", u32(0xbe00).substr(0, 2)},
      {30, "BF16", u32(0xbfc0).substr(0, 2)},
      {28, "F64", raw(-1.5)}};
  for (const auto& [number, name, data] : types) {
    const std::string file = gguf({.tensors = {tensor("w", {1}, number, 0)}, .data = data});
    const auto tensors = parse(file).tensors;
    std::vector<float> value(1);
    read_rows(tensors[0], 0, 1, value);
    EXPECT_EQ(value[0], -1.5F) << name;
    EXPECT_EQ(tensors[0].type_name, name);
  }
}

}  // namespace
}  // namespace kvs
