// SPDX-License-Identifier: Apache-2.0
// Options are read before the first file. With a model that is not there, a value that cannot be used is status 2 and
// names its option, and nothing is written.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

struct Command {
  std::string program, name;
  std::vector<std::string> words;  // that do but for the missing files
};

class OptionValues : public ::testing::Test {
 protected:
  std::vector<Command> commands() const {
    const std::string none = folder_ / "none", out = folder_ / "out";
    const std::vector<std::string> text{"--model", none, "--text", none, "--out", out};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), text.begin(), text.end());
      return more;
    };
    return {{"kvspectrum", "info", {none}},
            {"kvspectrum", "verify", {none}},
            {"kvspectrum", "merge", {none, "--out", out}},
            {"kvspectrum", "report", {none, "--out", out}},
            {"kvspectrum", "capture", text},
            {"kvspectrum", "spectrum", {"--model", none, "--text", none, "--out-dir", out}},
            {"kvspectrum", "perturb", text},
            {"kvspectrum", "retain", text},
            {"kvspectrum", "scores", text},
            {"kvcalibrate", "faedkv", text},
            {"kvcalibrate", "elitekv", with({"--elite", "2"})},
            {"kvcalibrate", "transform", with({"--budget", "50%"})},
            {"kvcalibrate", "freqkv", with({"--budget", "50%"})},
            {"kvcalibrate", "lagkv", with({"--budget", "50%"})},
            {"kvcalibrate", "store", text},
            {"kvcalibrate", "eval", with({"--method", "full"})},
            {"kvcalibrate", "latency", text},
            {"kvcalibrate", "generate", {"--model", none, "--prompt", "a"}},
            {"kvcalibrate", "cost", {"--model", none}},
            {"kvcalibrate", "export", {"--model", none, "--config", none, "--out", out, "--to", "llama-cpp"}},
            {"kvcalibrate", "validate", {none}}};
  }

  static Outcome run_words(const Command& command, std::vector<std::string> words) {
    words.insert(words.begin(), command.name);
    return run(command.program, words);
  }

  /// The command with `name` set to `value`, instead of what it had.
  static Outcome with_value(const Command& command, const std::string& name, const std::string& value) {
    std::vector<std::string> words = command.words;
    if (const auto at = std::ranges::find(words, "--" + name); at != words.end()) words.erase(at, at + 2);
    words.insert(words.end(), {"--" + name, value});
    return run_words(command, words);
  }

  /// Options that take a value, by --help: name to placeholder.
  static std::map<std::string, std::string> values_of(const Command& command) {
    static const std::regex kLine("^  --([a-z0-9-]+) (\\S+).*");
    std::map<std::string, std::string> found;
    std::istringstream lines(run_words(command, {"--help", "all"}).out);
    std::smatch match;
    for (std::string line; std::getline(lines, line);)
      if (std::regex_match(line, match, kLine)) found[match[1]] = match[2];
    return found;
  }

  void expect_message(const Command& command, const std::vector<std::string>& words, const std::string& message) const {
    const Outcome outcome = run_words(command, words);
    EXPECT_EQ(outcome.status, 2) << command.name << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << command.name;
  }

  /// Expects the message of a command with more options than it needs.
  void refuse(const std::string& name, const std::vector<std::string>& more, const std::string& message) {
    const Command one = command(name);
    std::vector<std::string> words = one.words;
    words.insert(words.end(), more.begin(), more.end());
    expect_message(one, words, message);
  }

  Command command(const std::string& name) const {
    for (const Command& one : commands())
      if (one.name == name) return one;
    throw std::runtime_error(name);
  }

  bool is_empty() const { return std::filesystem::is_empty(folder_ / "."); }

  TemporaryFolder folder_;
};

TEST_F(OptionValues, AreReadBeforeTheFirstFile) {
  static const std::set<std::string> kAnyText{"FILE", "PATH", "DIR", "TEXT"};
  std::size_t tried = 0;
  for (const Command& command : commands()) {
    EXPECT_EQ(run_words(command, command.words).status, 3) << command.name;
    for (const auto& [name, form] : values_of(command)) {
      if (kAnyText.contains(form)) continue;
      std::vector<std::string> values{"no-such-value", ""};
      if (form.size() == 1) values.insert(values.end(), {"-1", "1.5", "99999999999999999999"});
      for (const std::string& value : values) {
        const Outcome outcome = with_value(command, name, value);
        EXPECT_EQ(outcome.status, 2) << command.name << " --" << name << "=" << value << ": " << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(": error: --" + name)) << command.name << " --" << name << "=" << value;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 300U);
  EXPECT_TRUE(is_empty());
}

TEST_F(OptionValues, OfCalibratorsWithoutEffectAreRefused) {
  const std::string none = folder_ / "none";
  refuse("elitekv", {"--rank-step", "8"}, "--rank-step: needs --cache-ratio or --per-layer-rounds");
  refuse("elitekv", {"--holdout-documents", "1"}, "--holdout-documents: needs --cache-ratio or --per-layer-rounds");
  refuse("elitekv", {"--whiten", "both"}, "--whiten: needs --rank or --cache-ratio");
  refuse("elitekv", {"--singular-values", "up"}, "--singular-values: needs --rank or --cache-ratio");
  refuse("elitekv", {"--per-layer-rounds", "1"}, "--per-layer-rounds: needs --rank or --cache-ratio");
  refuse("elitekv", {"--cache-ratio", "0.5"}, "--elite: cannot be combined with --cache-ratio");
  refuse("elitekv", {"--rank", "8", "--per-layer-rounds", "1", "--norm", "1"}, "--per-layer-rounds: needs --norm 2");
  refuse("elitekv", {"--disjoint", "on", "--baseline", "low"}, "--baseline: cannot be combined with --disjoint on");
  refuse("elitekv", {"--skip-corrupt"}, "--skip-corrupt: needs --capture");
  refuse("elitekv", {"--capture", none, "--rank", "8", "--outputs", "fitted"},
         "--outputs: cannot be combined with --c");
  refuse("spectrum", {"--allow-incomplete"}, "--allow-incomplete: needs --capture");
  refuse("spectrum", {"--capture", none}, "--text: cannot be combined with --capture");
  refuse("faedkv", {"--per-layer-rounds", "1"}, "--per-layer-rounds: needs --budget");
  refuse("faedkv", {"--budget", "50%", "--chunks", "4"}, "--chunks: cannot be combined with --budget");
  refuse("store", {"--budget", "50%", "--per", "head"}, "--per: cannot be combined with --budget");
  refuse("store", {"--resume"}, "--resume: needs --budget");
  refuse("faedkv", {"--seed", "7"}, "--seed: needs --passes or --confidence or --budget");
  refuse("transform", {"--rows", "head", "--outliers", "0.1"}, "--outliers: found '0.1'");
  EXPECT_TRUE(is_empty());
}

TEST_F(OptionValues, OfRunsWithoutEffectAreRefused) {
  const std::string none = folder_ / "none", out = folder_ / "out";
  refuse("eval", {"--samples", "2"}, "--samples: needs --task");
  refuse("eval", {"--task", "passkey", "--window", "64"}, "--window: cannot be combined with --task");
  refuse("eval", {"--task", "passkey", "--set", "prefix=8"}, "--set prefix: cannot be combined with --task");
  refuse("eval", {"--config", none}, "--config: cannot be combined with --method");
  refuse("eval", {"--stride", "2000"}, "--stride: found '2000'");
  refuse("perturb", {"--compared-tokens", "2000"}, "--compared-tokens: found '2000'");
  refuse("latency", {"--window", "512"}, "--lengths: found 992 and 16 to decode");
  refuse("capture", {"--tokens-file", none}, "--text: cannot be combined with --tokens-file");
  refuse("capture", {"--force", "--resume"}, "--resume: cannot be combined with --force");
  refuse("retain", {"--config", none, "--sinks", "2"}, "--sinks: cannot be combined with --config");
  refuse("retain", {"--protocol", "in-place", "--recent", "2"},
         "--recent: cannot be combined with --protocol in-place");
  refuse("eval", {"--task", "ruler-cwe", "--depths", "5"}, "--depths: cannot be combined with --task r");
  refuse("eval", {"--seed", "7"}, "--seed: needs --task");
  refuse("eval", {"--task", "q.jsonl", "--seed", "7"},
         "--seed: cannot be combined with a --task of a file's questions");
  refuse("eval", {"--reference", "none"}, "--reference: cannot be combined with --method full");
  refuse("eval", {"--task", "passkey", "--reference", "none"}, "--reference: cannot be combined with --method full");
  for (const char* name : {"--force", "--no-lock"}) {
    expect_message(command("eval"), {"--model", none, "--text", none, "--method", "full", name},
                   std::string(name) + ": needs --out or --save-config");
    expect_message(command("latency"), {"--model", none, "--text", none, name}, std::string(name) + ": needs --out");
    refuse("generate", {name}, std::string(name) + ": found an option that is not known");
  }
  for (const char* name :
       {"capture", "spectrum", "retain", "scores", "elitekv", "transform", "store", "latency", "generate", "export"})
    refuse(name, {"--seed", "7"}, "--seed: found an option that is not known");
  expect_message(command("lagkv"),
                 {"--model", none, "--text", "-", "--out", out, "--budget", "50%", "--holdout-windows", "-1:"},
                 "--text: found -, expected files: --holdout-windows reads the text a second time");
  refuse("export", {"--matrix-dtype", "f16"}, "--matrix-dtype: cannot be combined with --to llama-cpp");
  refuse("cost", {"--geometry", "llama2-7b"}, "--model: cannot be combined with --geometry");
  EXPECT_TRUE(is_empty());
}

TEST_F(OptionValues, OfCachesAreCompleteBeforeTheFirstFile) {
  const std::string none = folder_ / "none";
  const std::vector<std::string> text{"--model", none, "--text", none};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), text.begin(), text.end());
    return more;
  };
  const std::string missing = ": found nothing, expected a whole number";
  expect_message(command("eval"), with({"--method", "freqkv"}), "--set cache_size" + missing);
  expect_message(command("eval"), with({"--method", "h2o", "--set", "cache_size=8"}), "--set recent" + missing);
  expect_message(command("eval"), with({"--method", "l2norm"}), "--set prefix" + missing);
  expect_message(command("eval"), with({"--task", "needle", "--method", "snapkv"}), "--set cache_size" + missing);
  expect_message(command("latency"), with({"--cache", "streaming"}), "--cache cache_size" + missing);
  expect_message(command("generate"), {"--model", none, "--prompt", "a", "--method", "freqkv"},
                 "--set cache_size" + missing);
  // The prefix of a question is its own.
  EXPECT_EQ(run_words(command("eval"), with({"--task", "needle", "--method", "l2norm"})).status, 3);
}

TEST_F(OptionValues, MissingOrMisspeltAreNamed) {
  const std::string none = folder_ / "none";
  expect_message(command("capture"), {"--model", none, "--text", none}, "missing option --out FILE");
  expect_message(command("capture"), {"--text", none, "--out", none}, "missing option --model PATH");
  expect_message(command("faedkv"), {"--model", none, "--out", none}, "missing option --text PATH");
  expect_message(command("lagkv"), {"--model", none, "--text", none, "--out", none}, "missing option --budget SIZE");
  expect_message(command("generate"), {"--model", none}, "missing option --prompt TEXT");
  expect_message(command("eval"), {"--model", none, "--text", none}, "missing option --method NAME or --config FILE");
  expect_message(command("validate"), {}, "missing FILE");
  expect_message(command("capture"), {"--modle", none}, "--modle: found an option that is not known");
  expect_message(command("generate"), {"--model", none, "--prompt", "--text"}, "is given as --prompt=--text");
  const auto near = [&](const std::string& name, const std::vector<std::string>& more, const std::string& meant) {
    std::vector<std::string> words{"--model", none, "--text", none};
    words.insert(words.end(), more.begin(), more.end());
    expect_message(command(name), words, "did you mean " + meant + "?");
  };
  near("eval", {"--method", "freqk"}, "freqkv");
  near("eval", {"--method", "freqkv", "--set", "cachesize=256"}, "cache_size");
  near("eval", {"--method", "full", "--set", "type=q8_O"}, "q8_0");
  near("eval", {"--method", "full", "--task", "pass-key"}, "passkey");
  near("eval", {"--methd", "full"}, "--method");
  for (const auto& [program, word, meant] :
       {std::tuple("kvcalibrate", "freqk", "freqkv"), std::tuple("kvspectrum", "spectrumm", "spectrum")})
    EXPECT_THAT(run(program, {word}).err, HasSubstr(std::string("did you mean ") + meant + "?"));
  expect_message(command("cost"), {"--geometry", "llama2-7"}, "did you mean llama2-7b?");
  near("latency", {"--cache", "lagkv rato=0.5"}, "ratio");
  near("freqkv", {"--out", none, "--budget", "50%", "--set", "sink=4"}, "sinks");
  near("capture", {"--out", none, "--device", "cpuu"}, "cpu");
}

}  // namespace
}  // namespace kvs::testing
