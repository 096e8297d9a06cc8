// SPDX-License-Identifier: Apache-2.0
// Names, words and places on the command line: N127 to N133.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tiny_gguf.h"
#include "tests/io/gguf_builder.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(Catalogue, N127_NamesOfModelsThatAreNoText) {
  const std::pair<std::string, std::string> names[] = {{"\xff\xfe", R"(\xff\xfe)"},
                                                       {std::string("a\0b", 3), R"(a\x00b)"},
                                                       {"\x1b[2J", R"(\x1b[2J)"},
                                                       {std::string(100000, 'n'), std::string(200, 'n') + "..."}};
  for (const auto& [name, shown] : names) {
    TinyGguf model;
    model.set_key("general.name", test::gguf_file::kString, test::gguf_file::text(name));
    write("m.gguf", model.bytes());
    expect_model_taken("m.gguf");
    const Outcome outcome = expect_done("kvspectrum", {"info", folder_ / "m.gguf", "--json"});
    EXPECT_EQ(parse_json(outcome.out, "stdout").at("name"), shown);
  }
  fs::rename(folder_ / "model", folder_ / "\xff");
  fs::create_symlink("\xff", folder_ / "model");
  expect_model_taken();
  expect_done("kvcalibrate", calibrate_words("elitekv", {"--elite", "2", "--out", folder_ / "out/e.json"}));
  EXPECT_EQ(parse_json(slurp(folder_ / "out/e.json"), "e.json").at("model").at("name"), R"(\xff)");
}

TEST_F(Catalogue, N128_ControlCharactersInWords) {
  Words words = capture_words();
  *(std::ranges::find(words, "--window") + 1) = "\x1b[2J\n";
  expect_refused("kvspectrum", words, 2, {R"(--window: found '\x1b[2J\x0a')"});
  expect_refused("kvspectrum", {"\x1b[2J"}, 2, {R"(found command '\x1b[2J')"});
  expect_model_refused(3, {R"(\x07)", "no such file"}, "\x07");
}

TEST_F(Catalogue, N129_WordsThatAreNotUtf8) {
  expect_model_refused(2, {R"(\xff: found bytes that are not UTF-8)"}, "\xff");
}

TEST_F(Catalogue, N130_WordsThatNoOptionTakes) {
  for (const char* word : {"extra", "-x"}) {
    Words words = capture_words();
    words.push_back(word);
    expect_refused("kvspectrum", words, 2, {std::string("found '") + word + "', expected an option"});
  }
  expect_refused("kvspectrum", {"info", folder_ / "model", "second"}, 2, {"found 'second', expected an option"});
}

TEST_F(Catalogue, N131_SettingsOfMethods) {
  const auto refuse = [&](const Words& settings, Parts parts) {
    Words words{"--method", "freqkv", "--out", folder_ / "out/earlier", "--force", "--set"};
    words.insert(words.end(), settings.begin(), settings.end());
    expect_refused("kvcalibrate", calibrate_words("eval", words), 2, parts);
  };
  for (const char* word : {"gamma", "=1", "gamma="}) refuse({word}, {"--set", word, "expected NAME=VALUE"});
  refuse({"gamma=0.5", "gamma=0.6"}, {"--set: found 'gamma' twice"});
  refuse({"cache_size=nan"}, {"--set cache_size: found nan"});
  refuse({"cache_size=16", "gamma=-inf"}, {"--set gamma: found -inf"});
  refuse({"cache_size=16,16"}, {"--set cache_size: found a list of 2, expected a value for each of 4 layers"});
  refuse({"cache_size=99999999999999999999"}, {"--set cache_size: found 1e+20"});
  refuse({"cache_size=16", "layers=4"}, {"--set layers: found 4, expected numbers below 4"});
  refuse({"cache_size=16", "sinsk=4"}, {"sinsk", "sinks"});
}

TEST_F(Catalogue, N132_OutputsThatAreNoFiles) {
  fs::create_symlink("loop", folder_ / "loop");
  fs::create_symlink("none/x", folder_ / "dangling");
  const auto refuse = [&](const std::string& out, int status, Parts parts) {
    Words words = capture_words();
    *(std::ranges::find(words, "--out") + 1) = out;
    expect_refused("kvspectrum", words, status, parts);
    expect_refused("kvcalibrate", calibrate_words("eval", {"--method", "full", "--force", "--out", out}), status,
                   parts);
  };
  refuse("", 2, {"--out: found ''"});
  refuse(folder_ / "out/", 2, {"out/: expected the name of an output file"});
  refuse(folder_ / "out", 6, {"out: found a directory, expected a file"});
  refuse(folder_ / "loop", 6, {"loop", "Too many levels of symbolic links"});
  refuse(folder_ / "dangling", 6, {"none", "No such file or directory"});
  refuse("/dev/full", 6, {"/dev/full: the output is no regular file"});
}

TEST_F(Catalogue, N133_FifosInPlaceOfFiles) {
  write("text.txt", std::string(40, 'a'));
  for (const std::string name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    const fs::path file = folder_ / ("model/" + name);
    fs::rename(file, folder_ / "kept");
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 3, {name, "expected a regular file"});
    fs::remove(file);
    fs::rename(folder_ / "kept", file);
  }
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  const std::string fifo = folder_ / "fifo";
  expect_model_refused(3, {"fifo: is no regular file"}, "fifo");
  expect_refused("kvcalibrate", {"validate", fifo}, 3, {"fifo: expected a regular file"});
  expect_refused("kvcalibrate", calibrate_words("eval", {"--config", fifo}), 3, {"fifo: expected a regular file"});
  expect_refused("kvspectrum", {"verify", fifo}, 3, {"fifo: expected a regular file"});
  expect_refused("kvspectrum", {"report", fifo, "--out", folder_ / "out/r.html"}, 3, {"fifo: expected a regular file"});
}

}  // namespace
}  // namespace kvs::testing
