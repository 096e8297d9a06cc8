// SPDX-License-Identifier: Apache-2.0
// GGUF files, header and metadata: N28 to N36.
#include <gmock/gmock.h>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tiny_gguf.h"
#include "tests/io/gguf_builder.h"

namespace kvs::testing {
namespace {

using namespace test::gguf_file;

const std::string kStart = "GGUF" + u32(3);

/// A file of one key and no tensor.
std::string only_key(std::string_view name, std::uint32_t type, std::string_view value) {
  return gguf({.keys = {key(name, type, value)}});
}

TEST_F(Catalogue, N28_Magic) {
  write("m.gguf", "\x1b[2J" + u32(3) + std::string(100, '\0'));
  expect_model_refused(3, {"m.gguf", "byte 0", R"(found "\x1b[2J")", "expected \"GGUF\""}, "m.gguf");
}

TEST_F(Catalogue, N29_Versions) {
  std::string bytes = TinyGguf().bytes();
  for (const std::uint32_t version : {0U, 1U, 4U}) {
    write("m.gguf", bytes.replace(4, 4, u32(version)));
    expect_model_refused(4, {"m.gguf", "byte 4", "found " + std::to_string(version), "expected 2 or 3"}, "m.gguf");
  }
  write("m.gguf", bytes.replace(4, 4, u32(0x03000000)));
  expect_model_refused(4, {"m.gguf", "big-endian"}, "m.gguf");
  for (const std::uint32_t version : {2U, 3U}) {
    write("m.gguf", bytes.replace(4, 4, u32(version)));
    expect_model_taken("m.gguf");
  }
}

TEST_F(Catalogue, N30_CountsThatNoFileHolds) {
  for (const std::uint64_t count : {~0UL, 5UL}) {
    write("m.gguf", kStart + u64(count) + u64(0) + std::string(50, '\0'));
    expect_model_refused(3, {"m.gguf", "byte 8: number of tensors: found " + std::to_string(count)}, "m.gguf");
    write("m.gguf", kStart + u64(0) + u64(count) + std::string(50, '\0'));
    expect_model_refused(3, {"m.gguf", "byte 16: number of metadata keys: found " + std::to_string(count)}, "m.gguf");
  }
}

TEST_F(Catalogue, N31_LengthsOfTextsBeyondTheFile) {
  for (const std::uint64_t length : {1UL << 63, 100UL}) {
    write("m.gguf", kStart + u64(0) + u64(1) + u64(length) + std::string(16, 'k'));
    expect_model_refused(3, {"m.gguf", "byte 24", "string length " + std::to_string(length), "16 bytes are left"},
                         "m.gguf");
    write("m.gguf", only_key("k", kString, u64(length)));
    expect_model_refused(3, {"m.gguf", "byte 37", "key \"k\"", "string length " + std::to_string(length)}, "m.gguf");
  }
}

TEST_F(Catalogue, N32_AnEmptyKey) {
  write("m.gguf", kStart + u64(0) + u64(1) + key("", kU64, u64(0)));
  expect_model_refused(3, {"m.gguf", "byte 24", "empty key"}, "m.gguf");
}

TEST_F(Catalogue, N33_ADuplicateKey) {
  TinyGguf model;
  model.keys.push_back(model.keys.front());
  write("m.gguf", model.bytes());
  expect_model_refused(3, {"m.gguf", "\"general.architecture\"", "duplicate key"}, "m.gguf");
}

TEST_F(Catalogue, N34_TypesOfValues) {
  for (const std::uint32_t type : {13U, 1U << 31}) {
    write("m.gguf", only_key("k", type, "x"));
    expect_model_refused(3, {"m.gguf", "key \"k\"", "found value type " + std::to_string(type)}, "m.gguf");
  }
  for (const int levels : {1, 100000}) {
    std::string nested;
    for (int level = 0; level < levels; ++level) nested += u32(kArray) + u64(1);
    write("m.gguf", only_key("k", kArray, nested + array(kU8, 1, "x")));
    expect_model_refused(3, {"m.gguf", "key \"k\"", "array of arrays"}, "m.gguf");
  }
}

TEST_F(Catalogue, N35_ArraysLongerThanTheFile) {
  for (const std::uint64_t count : {1UL << 61, 5UL}) {
    write("m.gguf", only_key("k", kArray, array(kU64, count)));
    expect_model_refused(3, {"m.gguf", "key \"k\"", "array length: found " + std::to_string(count)}, "m.gguf");
  }
}

TEST_F(Catalogue, N36_Alignments) {
  for (const std::uint32_t alignment : {0U, 24U, 1U << 31}) {
    write("m.gguf", only_key("general.alignment", kU32, u32(alignment)));
    expect_model_refused(3, {"m.gguf", "general.alignment", "found " + std::to_string(alignment), "power of two"},
                         "m.gguf");
  }
  write("m.gguf", only_key("general.alignment", kI32, u32(32)));
  expect_model_refused(3, {"m.gguf", "general.alignment", "expected a UINT32"}, "m.gguf");
}

}  // namespace
}  // namespace kvs::testing
