// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {

/// kvcalibrate on a tiny model and three texts.
class CalibratePrograms : public ::testing::Test {
 protected:
  CalibratePrograms() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 3, 70);
  }
  std::vector<std::string> with_text(const std::string& command, const std::vector<std::string>& more,
                                     const std::string& model = "model") const {
    return words_on_texts(command, folder_ / model, folder_ / "tokens.jsonl", more);
  }
  std::vector<std::string> faedkv(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out", folder_ / out});
    return with_text("faedkv", more);
  }
  std::vector<std::string> elitekv(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--elite", "2", "--out", folder_ / out});
    return with_text("elitekv", more);
  }
  /// `kvcalibrate export`.
  Outcome export_to(const std::string& name, const std::string& config, const std::string& out,
                    const std::vector<std::string>& more = {}, const std::string& model = "model") const {
    std::vector<std::string> words{"export",  "--to",          name,    "--config",   folder_ / config,
                                   "--model", folder_ / model, "--out", folder_ / out};
    words.insert(words.end(), more.begin(), more.end());
    return run("kvcalibrate", words);
  }
  Json config(const std::string& name) const { return parse_json(slurp(folder_ / name), name); }
  double perplexity(const std::vector<std::string>& how) const { return evaluated(how).at("ppl").get<double>(); }
  Json evaluated(const std::vector<std::string>& how) const {
    auto words = with_text("eval", how);
    words.push_back("--json");
    const Outcome outcome = run("kvcalibrate", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "eval");
  }
  void expect_valid(const std::string& name) const {
    const Outcome outcome = run("kvcalibrate", {"validate", folder_ / name});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  /// Expects that a calibration which is killed and resumed writes the bytes of one that runs through.
  void expect_resumed_is_identical(const std::string& command, std::vector<std::string> options) const {
    options.insert(options.end(), {"--out", folder_ / "k.json"});
    const std::vector<std::string> words = with_text(command, options);
    options.push_back("--resume");
    ASSERT_EQ(run("kvcalibrate", words).status, 0);
    const std::string whole = slurp(folder_ / "k.json"), tensors = slurp(folder_ / "k.safetensors");
    std::mt19937 random(3);
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "."))
      if (entry.path().filename().string().starts_with("k.")) std::filesystem::remove(entry.path());
    run_with_kills("kvcalibrate", words, with_text(command, options), random);
    EXPECT_EQ(slurp(folder_ / "k.json"), whole);
    EXPECT_EQ(slurp(folder_ / "k.safetensors"), tensors);
  }
  TemporaryFolder folder_;
};

}  // namespace kvs::testing
