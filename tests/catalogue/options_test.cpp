// SPDX-License-Identifier: Apache-2.0
// Options: N105 to N114.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/catalogue/catalogue.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

/// `words` followed by `more`.
Arguments plus(Arguments words, const Arguments& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
/// `words` with another value of --window.
Arguments with_window(Arguments words, const std::string& value) {
  *(std::ranges::find(words, "--window") + 1) = value;
  return words;
}

TEST_F(Catalogue, N105_OptionsUnknownWithoutValueOrTwice) {
  const auto refuse = [&](const Arguments& more, Parts parts) {
    expect_refused("kvspectrum", plus(capture_words(), more), 2, parts);
  };
  refuse({"--lyers", "0"}, {"--lyers", "--layers"});
  refuse({"--layers"}, {"--layers"});
  refuse({"--layers", "--json"}, {"--layers: found '--json', expected a value"});
  refuse({"--window", "16"}, {"--window: found twice, expected once"});
  for (const char* range : {"5-2", "0-1-2", "a", "0,", "-1", "0--1"})
    refuse({"--layers", range}, {"--layers", std::string("found '") + range + "'", "indices such as 0,14-16, or all"});
  for (const char* range : {"0-99", "4"})
    refuse({"--layers", range}, {"--layers", std::string("found '") + range + "'", "from 0 to 3"});
  expect_refused("kvspectrum", {}, 2, {"found no command"});
  expect_refused("kvspectrum", {"captur"}, 2, {"found command 'captur'", "did you mean capture?"});
  expect_refused("kvspectrum", {"recommend"}, 2, {"found command 'recommend'", "`kvcalibrate --help` lists other"});
  expect_refused("kvcalibrate", {"info"}, 2, {"found command 'info'", "`kvspectrum --help` lists other commands"});
  refuse({"--document", "1"}, {"--document: found an option", "expected one of --help all, did you mean --documents?"});
}

TEST_F(Catalogue, N106_NumbersThatAreNone) {
  for (const char* value : {"0", "1", "-1", "1e3", "10x", "99999999999999999999", "nan", "", " 32", "+32", "0x20"})
    expect_refused("kvspectrum", with_window(capture_words(), value), 2,
                   {"--window", std::string("found '") + value + "'"});
  for (const char* range : {"5:1", "2:2", "-1:-4", ":0", "1", "a:b"})
    expect_refused("kvspectrum", plus(capture_words(), {"--windows", range}), 2,
                   {"--windows", std::string("found '") + range + "', expected A:B"});
}

TEST_F(Catalogue, N107_NumbersOfChunks) {
  // A prefix of 24 less 2 and 3 has 19 tokens: 10 bins.
  for (const auto& [chunks, range] : {std::pair("0", "of at least 1"), std::pair("17", "from 1 to 10")})
    expect_refused("kvcalibrate",
                   calibrate_words("faedkv", {"--chunks", chunks, "--sinks", "2", "--recent", "3", "--out",
                                              folder_ / "out/earlier", "--force"}),
                   2, {"--chunks", std::string("found '") + chunks + "', expected a whole number " + range});
}

TEST_F(Catalogue, N108_EliteChunks) {
  for (const auto& [elite, range] : {std::pair("0", "of at least 1"), std::pair("5", "from 1 to 4")})
    expect_refused("kvcalibrate",
                   calibrate_words("elitekv", {"--elite", elite, "--out", folder_ / "out/earlier", "--force"}), 2,
                   {"--elite", std::string("found '") + elite + "', expected a whole number " + range});
}

TEST_F(Catalogue, N109_Ranks) {
  // Rows of the factors: 2 KV heads of 8 - 2 x 2 channels of keys and 8 of values, 24 in all, below d_model 48.
  for (const auto& [rank, range] : {std::pair("0", "of at least 1"), std::pair("25", "24")})
    expect_refused(
        "kvcalibrate",
        calibrate_words("elitekv", {"--elite", "2", "--rank", rank, "--out", folder_ / "out/earlier", "--force"}), 2,
        {"--rank", std::string("found '") + rank + "'", range});
  Arguments words = calibrate_words("elitekv", {"--elite", "2", "--rank", "24", "--out", folder_ / "out/e.json"});
  std::erase(words, "--quiet");
  EXPECT_THAT(expect_done("kvcalibrate", words).err, HasSubstr("more parameters"));
}

TEST_F(Catalogue, N110_SharesAndSizesOfCaches) {
  const auto refuse = [&](const std::string& method, const Arguments& settings, int status, Parts parts) {
    expect_refused(
        "kvcalibrate",
        plus(calibrate_words("eval", {"--method", method, "--out", folder_ / "out/earlier", "--force", "--set"}),
             settings),
        status, parts);
  };
  for (const char* gamma : {"0", "1.5", "-1", "nan"})
    refuse("freqkv", {"cache_size=16", std::string("gamma=") + gamma}, 2, {"--set", "gamma"});
  refuse("freqkv", {"cache_size=16", "gamma=0.001"}, 2, {"gamma"});
  refuse("freqkv", {"cache_size=4", "sinks=4"}, 2, {"cache_size"});
  refuse("streaming", {"cache_size=4", "sinks=4"}, 2, {"cache_size"});
  refuse("h2o", {"cache_size=8", "recent=8"}, 2, {"cache_size"});
}

TEST_F(Catalogue, N111_AnOutputThatIsAnInput) {
  const auto refuse = [&](const std::string& out) {
    Arguments words = capture_words();
    *(std::ranges::find(words, "--out") + 1) = folder_ / out;
    expect_refused("kvspectrum", words, 2, {out});
  };
  refuse("tokens.jsonl");
  refuse("model/model.safetensors");
  refuse("model/config.json");
  fs::create_hard_link(folder_ / "tokens.jsonl", folder_ / "hard");
  refuse("hard");
  fs::create_symlink("tokens.jsonl", folder_ / "soft");
  refuse("soft");

  // Names as a user types them, relative to the folder that the program runs in.
  const auto refuse_in = [&](const std::string& folder, const std::string& named, Words words, const char* reason) {
    words.insert(words.end(), {"--method", "full"});
    expect_refused_after("cd " + (folder_ / folder).string(), "kvcalibrate", calibrate_words("eval", words), 2,
                         {named, reason});
  };
  for (const char* out : {"new.json", "./new.json", "../model/new.json"})
    refuse_in("model", out, {"--out", out}, "the folder of the model");
  fs::create_symlink("new.json", folder_ / "link.json");
  for (const char* config : {"new.json", "./new.json", "model/../new.json", "link.json"})
    refuse_in("", config, {"--save-config", config, "--out", "new.json"}, "the name of two outputs");
}

TEST_F(Catalogue, N112_AnOutputThatExists) {
  Arguments words = capture_words();
  std::erase(words, "--force");
  expect_refused("kvspectrum", words, 7, {"out/earlier", "found a file that exists", "--force"});
  expect_refused("kvspectrum", plus(capture_words(), {"--resume"}), 2, {"--force", "--resume"});
  *(std::ranges::find(words, "--out") + 1) = folder_ / "c.h5";
  write("c.h5.manifest.json", "of the user's");
  expect_refused("kvspectrum", words, 7, {"c.h5.manifest.json", "found a file that exists", "--force"});
}

TEST_F(Catalogue, N113_NoGpu) {
  // An existing device is hidden.
  expect_refused_after("export CUDA_VISIBLE_DEVICES=", "kvspectrum", plus(capture_words(), {"--device", "cuda"}), 6,
                       {"cuda"});
  const Outcome outcome =
      run_after("export CUDA_VISIBLE_DEVICES=", "kvspectrum", plus(capture_words(), {"--device", "auto"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(Catalogue, N114_Threads) {
  for (const char* threads : {"0", "100000", "-1"}) {
    Arguments words = capture_words();
    *(std::ranges::find(words, "--threads") + 1) = threads;
    expect_refused("kvspectrum", words, 2, {"--threads", std::string("found '") + threads + "'", "from 1 to 4096"});
  }
}

}  // namespace
}  // namespace kvs::testing
