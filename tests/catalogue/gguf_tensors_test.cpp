// SPDX-License-Identifier: Apache-2.0
// GGUF files, entries and data of tensors: N37 to N45.
#include <gmock/gmock.h>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tiny_gguf.h"
#include "tests/io/gguf_builder.h"

namespace kvs::testing {
namespace {

using namespace test::gguf_file;
using Shape = std::vector<std::uint64_t>;

/// One tensor "w" and 4 KiB of data.
std::string only_tensor(const Shape& lengths, std::uint32_t type, std::uint64_t offset = 0) {
  return gguf({.tensors = {tensor("w", lengths, type, offset)}, .data = std::string(4096, 'x')});
}
std::string two_of_32_bytes(std::uint64_t first, std::uint64_t second, std::size_t bytes) {
  return gguf({.tensors = {tensor("a", {8}, kTypeF32, first), tensor("b", {8}, kTypeF32, second)},
               .data = std::string(bytes, 'x')});
}

TEST_F(Catalogue, N37_NumbersOfAxes) {
  write("m.gguf", only_tensor({}, kTypeF32));
  expect_model_refused(3, {"m.gguf", "tensor \"w\"", "found 0 axes"}, "m.gguf");
  write("m.gguf", only_tensor(Shape(5, 1), kTypeF32));
  expect_model_refused(3, {"m.gguf", "tensor \"w\"", "found 5 axes, expected 1 to 4"}, "m.gguf");
  write("m.gguf", "GGUF" + u32(3) + u64(1) + u64(0) + text("w") + u32(~0U) + std::string(64, '\0'));
  expect_model_refused(3, {"m.gguf", "tensor \"w\"", "found 4294967295 axes"}, "m.gguf");
}

TEST_F(Catalogue, N38_LengthsOfAxes) {
  for (const std::uint64_t length : {0UL, 1UL << 63, ~0UL}) {
    write("m.gguf", only_tensor({8, length}, kTypeF32));
    expect_model_refused(3, {"m.gguf", "tensor \"w\"", "axis of length " + std::to_string(length)}, "m.gguf");
  }
}

TEST_F(Catalogue, N39_CountsThatOverflow) {
  for (const auto& [shape, type] :
       {std::pair{Shape{1UL << 32, 1UL << 32}, kTypeF32}, std::pair{Shape{1UL << 62, 2}, kTypeF32},
        std::pair{Shape{32, 1UL << 59}, kTypeQ41}}) {
    write("m.gguf", only_tensor(shape, type));
    expect_model_refused(3, {"m.gguf", "tensor \"w\": overflow"}, "m.gguf");
  }
}

TEST_F(Catalogue, N40_TypesUnknownOrRemoved) {
  for (const std::uint32_t type : {99U, 4U, ~0U}) {
    write("m.gguf", only_tensor({32}, type));
    expect_model_refused(3, {"m.gguf", "tensor \"w\"", "found type " + std::to_string(type), "unknown or removed"},
                         "m.gguf");
  }
}

TEST_F(Catalogue, N41_RowsThatAreNoWholeBlocks) {
  write("m.gguf", only_tensor({33}, kTypeQ41));
  expect_model_refused(3, {"m.gguf", "tensor \"w\"", "rows of 33 numbers", "a multiple of 32 for Q4_1"}, "m.gguf");
  write("m.gguf", only_tensor({128}, kTypeQ4K));
  expect_model_refused(3, {"m.gguf", "tensor \"w\"", "rows of 128 numbers", "a multiple of 256 for Q4_K"}, "m.gguf");
}

TEST_F(Catalogue, N42_PlacesOfTensors) {
  write("m.gguf", only_tensor({4}, kTypeF32, 16));
  expect_model_refused(3, {"m.gguf", "tensor \"w\"", "offset 16, not aligned to 32"}, "m.gguf");
  write("m.gguf", only_tensor({8}, kTypeF32, 1UL << 40));
  expect_model_refused(3, {"m.gguf", "tensor \"w\"", "ends at data byte 1099511627808"}, "m.gguf");
  write("m.gguf", only_tensor({16}, kTypeF32, ~0UL - 31));
  expect_model_refused(3, {"m.gguf", "tensor \"w\": overflow"}, "m.gguf");
  write("m.gguf", two_of_32_bytes(0, 0, 64));
  expect_model_refused(3, {"m.gguf", "tensor \"b\"", "overlaps tensor \"a\""}, "m.gguf");
  write("m.gguf", two_of_32_bytes(0, 64, 96));
  expect_model_refused(3, {"m.gguf", "bytes 128..159 belong to no tensor"}, "m.gguf");
}

TEST_F(Catalogue, N43_SizesWhoseSumOverflows) {
  // Each fits in 64 bits, but not both: 2^61 - 8 numbers of four bytes, twice and once more.
  std::vector<std::string> entries;
  std::uint64_t offset = 0;
  constexpr std::uint64_t kNumbers = (1UL << 61) - 8;
  for (const char* name : {"a", "b", "c"}) {
    entries.push_back(tensor(name, {kNumbers}, kTypeF32, offset));
    offset += kNumbers * 4;
  }
  write("m.gguf", gguf({.tensors = entries, .data = std::string(64, 'x')}));
  expect_model_refused(3, {"m.gguf", "tensor \""}, "m.gguf");
}

TEST_F(Catalogue, N44_NamesOfTensors) {
  const auto refuse = [&](const std::vector<std::string>& names, std::string_view part) {
    test::gguf_file::Parts parts;
    for (const std::string& name : names) {
      parts.tensors.push_back(tensor(name, {8}, kTypeF32, parts.data.size()));
      parts.data += std::string(32, 'x');
    }
    write("m.gguf", gguf(parts));
    expect_model_refused(3, {"m.gguf", part}, "m.gguf");
  };
  refuse({"w", "w"}, "duplicate name \"w\"");
  refuse({std::string("a\0b", 3)}, R"(found "a\x00b")");
  refuse({"a\xff"}, R"(found "a\xff")");
  refuse({std::string(64, 'n')}, "found 64 bytes, expected 1 to 63");
}

TEST_F(Catalogue, N45_DataOneByteShort) {
  TinyGguf model;
  model.tensors.push_back({"rest", {1}, kTypeF32, std::string(4, '\0')});
  const std::string whole = model.bytes();
  constexpr std::size_t kPadding = 28;
  write("m.gguf", whole.substr(0, whole.size() - kPadding - 1));
  expect_model_refused(3, {"m.gguf", "tensor \"rest\"", "ends at data byte"}, "m.gguf");
  write("m.gguf", whole.substr(0, whole.size() - kPadding));  // only without the padding
  expect_model_taken("m.gguf");
}

}  // namespace
}  // namespace kvs::testing
