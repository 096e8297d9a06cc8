// SPDX-License-Identifier: Apache-2.0
// A hostile file can make its reader take at most kPerByte bytes of memory for each of its own bytes, and kConstant. A
// parser runs in a process whose address space ends there.
#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <random>

#include "io/digest.h"
#include "io/hdf5/isolated.h"
#include "io/journal.h"
#include "io/json.h"
#include "io/safetensors_parse.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/sanitizer.h"
#include "tests/io/temporary_directory.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs {
namespace {

using namespace test;
namespace gguf = gguf_file;

constexpr std::size_t kPerByte = 48, kConstant = 16U << 20, kLong = 1U << 20;

using Parser = std::function<void(const std::string&)>;

/// Expects `parse` to accept or refuse each of `files` without more memory than the largest file may cost.
void expect_bounded(const std::string& what, const std::vector<std::string>& files, const Parser& parse) {
  std::size_t largest = 0;
  for (const std::string& file : files) largest = std::max(largest, file.size());
  const auto task = [&] {
    for (const std::string& file : files) try {
        parse(file);
      } catch (const Error&) {
      }
    return std::string("done");
  };
  try {
    EXPECT_EQ(run_isolated(what, task, {.memory_bytes = kPerByte * largest + kConstant}), "done");
  } catch (const Error& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}

std::string repeated(std::string_view piece, std::size_t bytes = kLong) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}
/// Pieces with a number in each, so that no two are the same.
std::string numbered(const std::string& before, const std::string& after, std::size_t bytes = kLong) {
  std::string text;
  for (std::size_t n = 0; text.size() < bytes; ++n) text += before + std::to_string(n) + after;
  text.pop_back();
  return text;
}

std::string safetensors(const std::string& header, std::uint64_t length) { return gguf::raw(length) + header; }
std::string safetensors(const std::string& header) { return safetensors(header, header.size()); }

void read_json(const std::string& bytes) { parse_json(bytes, "input"); }
void read_safetensors(const std::string& bytes) { parse_safetensors(std::as_bytes(std::span(bytes)), "input"); }
void read_index(const std::string& bytes) { parse_safetensors_index(bytes, "input"); }
void read_gguf(const std::string& bytes) { gguf::parse(bytes); }
void read_tokenizer_json(const std::string& bytes) { parse_tokenizer_json(bytes, "input"); }
void read_tokenizer_model(const std::string& bytes) { parse_tokenizer_model(bytes, "input", {}); }

class ParserMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (test::sanitized()) GTEST_SKIP() << "AddressSanitizer takes its own address space";
  }
};

TEST_F(ParserMemory, OfJson) {
  for (const std::string piece : {"0,", "[],", "{},", "\"\",", "[0],", "[[]],", "{\"\":0},", "1e9,", "\"\\u0041\","}) {
    std::string text = "[" + repeated(piece);
    text.back() = ']';
    expect_bounded(piece, {text}, read_json);
  }
  expect_bounded("depth", {repeated("["), repeated("{\"a\":"), repeated(" ")}, read_json);
  expect_bounded("members", {"{" + numbered("\"", "\":0,") + "}"}, read_json);
}

TEST_F(ParserMemory, OfSafetensors) {
  expect_bounded("lengths",
                 {safetensors("{}", ~0ULL), safetensors("{}", 1ULL << 40), safetensors("{}", 99'999'999),
                  safetensors(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,9]}})")},
                 read_safetensors);
  const std::string empty = R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)";
  expect_bounded("tensors", {safetensors("{" + numbered("\"", empty) + "}")}, read_safetensors);
  std::string axes = R"({"a":{"dtype":"F32","shape":[)" + repeated("1,");
  axes.back() = ']';
  expect_bounded("axes", {safetensors(axes + R"(,"data_offsets":[0,4]}})") + "1234"}, read_safetensors);
  expect_bounded("metadata", {safetensors(R"({"__metadata__":{)" + numbered("\"", R"(":"",)") + "}}")},
                 read_safetensors);
  expect_bounded("index", {R"({"weight_map":{)" + numbered("\"", R"(":"a",)") + "}}"}, read_index);
}

TEST_F(ParserMemory, OfGguf) {
  const std::uint64_t huge = 1ULL << 60;
  std::vector<std::string> files;
  for (const std::uint64_t count : {huge, std::uint64_t{1} << 24}) {
    files.push_back("GGUF" + gguf::u32(3) + gguf::u64(count) + gguf::u64(0));
    files.push_back("GGUF" + gguf::u32(3) + gguf::u64(0) + gguf::u64(count));
    files.push_back(gguf::gguf({.keys = {gguf::u64(count)}}));
    files.push_back(gguf::gguf({.keys = {gguf::key("a", gguf::kString, gguf::u64(count))}}));
    for (const std::uint32_t type : {gguf::kU8, gguf::kBool, gguf::kString, gguf::kF64, gguf::kArray})
      files.push_back(gguf::gguf({.keys = {gguf::key("a", gguf::kArray, gguf::array(type, count))}}));
    files.push_back(gguf::gguf({.tensors = {gguf::tensor("t", {count}, gguf::kTypeF32, 0)}}));
  }
  expect_bounded("counts", files, read_gguf);
  const auto with_array = [](std::uint32_t type, std::uint64_t count) {
    return gguf::gguf({.keys = {gguf::key("a", gguf::kArray, gguf::array(type, count, std::string(kLong, '\0')))}});
  };
  expect_bounded("bytes", {with_array(gguf::kU8, kLong)}, read_gguf);
  expect_bounded("empty strings", {with_array(gguf::kString, kLong / 8)}, read_gguf);
  gguf::Parts keys, tensors;
  for (int n = 0; n < 60'000; ++n) {
    keys.keys.push_back(gguf::key(std::to_string(n), gguf::kU8, "1"));
    tensors.tensors.push_back(gguf::tensor(std::to_string(n), {0}, gguf::kTypeF32, 0));
  }
  expect_bounded("keys", {gguf::gguf(keys)}, read_gguf);
  expect_bounded("tensors", {gguf::gguf(tensors)}, read_gguf);
}

std::string tokenizer(const std::string& vocabulary, const std::string& merges = "", const std::string& added = "") {
  return R"({"version":"1.0","added_tokens":[)" + added + R"(],"pre_tokenizer":{"type":"ByteLevel",
    "add_prefix_space":false},"model":{"type":"BPE","vocab":{)" +
         vocabulary + R"(},"merges":[)" + merges + "]}}";
}

TEST_F(ParserMemory, OfTokenizers) {
  const std::string last = "16777215";
  expect_bounded("ids",
                 {tokenizer(R"("a":)" + last), tokenizer(R"("a":0)", "", R"({"id":)" + last + R"(,"content":"b"})"),
                  tokenizer(R"("a":65535)")},
                 read_tokenizer_json);
  std::string vocabulary;
  for (int n = 0; n < 100'000; ++n) vocabulary += '"' + std::to_string(n) + "\":" + std::to_string(n) + ',';
  vocabulary.pop_back();
  expect_bounded("tokens", {tokenizer(vocabulary)}, read_tokenizer_json);
  std::string merges;
  for (int n = 0; n < 100'000; ++n) merges += '"' + std::to_string(n % 100) + ' ' + std::to_string(n % 97) + "\",";
  merges.pop_back();
  expect_bounded("merges", {tokenizer(vocabulary, merges)}, read_tokenizer_json);
  std::string added;
  for (int n = 0; n < 20'000; ++n)
    added += R"({"id":)" + std::to_string(n + 1) + R"(,"content":"<)" + std::to_string(n) + ">\"},";
  added.pop_back();
  expect_bounded("added", {tokenizer(R"("a":0)", "", added)}, read_tokenizer_json);
  // ModelProto.pieces, each of at least one letter: field 1 of a message with field 1, the text.
  std::string pieces;
  for (int n = 0; n < 60'000; ++n) {
    const std::string text = std::to_string(n);
    pieces += std::string("\x0a") + static_cast<char>(text.size() + 2) + '\x0a' + static_cast<char>(text.size()) + text;
  }
  expect_bounded("pieces", {pieces, "\x0a\xff\xff\xff\xff\x7f", repeated(std::string("\x0a\0", 2))},
                 read_tokenizer_model);
}

TEST_F(ParserMemory, OfTheFuzzersSeedsAndTheirMutations) {
  const std::map<std::string, Parser> parsers{{"json", read_json},
                                              {"safetensors", read_safetensors},
                                              {"gguf", read_gguf},
                                              {"tokenizer", read_tokenizer_json},
                                              {"tokenizer_model", read_tokenizer_model}};
  std::mt19937 random(5);
  for (const auto& [name, parse] : parsers) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(fs::path(KVS_GOLDEN_DIR) / "../fuzz/corpus" / name)) {
      const std::string sound = read_all(entry.path()).substr(name == "safetensors" ? 1 : 0);
      for (int run = 0; run < 40 && !sound.empty(); ++run) {
        files.push_back(sound);
        for (int change = 0; change < 3; ++change)
          files.back()[random() % sound.size()] = "\xff\0\x7f\x80[9"[random() % 6];
      }
    }
    EXPECT_GT(files.size(), 100U) << name;
    expect_bounded(name, files, parse);
  }
}

TEST_F(ParserMemory, OfJournals) {
  const TemporaryDirectory folder;
  std::string lines;
  std::uint32_t sum = 0;
  while (lines.size() < kLong) {
    sum = crc32c(std::as_bytes(std::span("0", 1)), sum);
    std::array<char, 16> line{};
    std::snprintf(line.data(), line.size(), "[0,\"%08x\"]\n", sum);
    lines += line.data();
  }
  const fs::path path = folder.write("run.journal", lines);
  EXPECT_GT(Journal::read(path).records.size(), 60'000U);
  expect_bounded("records", {lines}, [&](const std::string&) { Journal::read(path); });
}

}  // namespace
}  // namespace kvs
