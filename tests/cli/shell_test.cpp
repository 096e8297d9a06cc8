// SPDX-License-Identifier: Apache-2.0
// Completions, manual pages, the short and the whole --help, and doctor.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

/// The words that bash proposes for the last of `words`, in order.
Words proposals(const std::string& program, const Words& words) {
  std::string line;
  for (const std::string& word : words) line += " '" + word + "'";
  const std::string script = "source <(" KVS_BINARY_DIR "/" + program + " completion bash)\n" + "COMP_WORDS=(" +
                             program + line + ") COMP_CWORD=" + std::to_string(words.size()) + "\n" +
                             "compopt() { :; }\n_" + program + "\nprintf '%s\\n' \"${COMPREPLY[@]}\"";
  const Outcome outcome = run("/bin/bash", {"-c", script});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  Words found;
  std::istringstream lines(outcome.out);
  for (std::string word; std::getline(lines, word);)
    if (!word.empty()) found.push_back(word);
  return found;
}

TEST(Completion, ProposesCommandsOptionsAndValues) {
  EXPECT_THAT(proposals("kvspectrum", {"sp"}), ElementsAre("spectrum"));
  EXPECT_THAT(proposals("kvcalibrate", {""}), Contains("recommend"));
  EXPECT_THAT(proposals("kvcalibrate", {"eval", "--dev"}), ElementsAre("--device"));
  EXPECT_THAT(proposals("kvcalibrate", {"eval", "--device", ""}), ElementsAre("cpu", "cuda", "auto"));
  EXPECT_THAT(proposals("kvspectrum", {"spectrum", "--transform", "d"}), ElementsAre("dct", "dft"));
}

TEST(Completion, LeavesPathsToTheShellAndNumbersToTheUser) {
  EXPECT_THAT(proposals("kvcalibrate", {"eval", "--model", ""}), ElementsAre());
  EXPECT_THAT(proposals("kvcalibrate", {"eval", "--window", ""}), ElementsAre());
  EXPECT_THAT(proposals("kvspectrum", {"info", "SmolLM2"}), ElementsAre());
}

/// The options that `command --help all` lists.
Words options_of(const std::string& program, const std::string& command) {
  Words options;
  std::istringstream lines(run(program, {command, "--help", "all"}).out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  --")) options.push_back(line.substr(2, line.find_first_of(" \n", 2) - 2));
  return options;
}

TEST(Completion, EveryShellHasEveryOption) {
  for (const std::string command : {"eval", "compare", "export"}) {
    const Words options = options_of("kvcalibrate", command);
    ASSERT_GT(options.size(), 8U);
    const Words bash = proposals("kvcalibrate", {command, "--"});
    const std::string fish = run("kvcalibrate", {"completion", "fish"}).out;
    const std::string zsh = run("kvcalibrate", {"completion", "zsh"}).out;
    for (const std::string& option : options) {
      EXPECT_THAT(bash, Contains(option)) << command;
      EXPECT_THAT(fish, HasSubstr("'__fish_seen_subcommand_from " + command + "' -l " + option.substr(2) + " "));
      EXPECT_THAT(zsh, HasSubstr(option + "[")) << command;
    }
  }
}

TEST(Completion, RefusesAnotherShell) {
  for (const Words& words : {Words{"completion"}, Words{"completion", "bash", "zsh"}, Words{"completion", "basch"},
                             Words{"manual", "eval"}}) {
    const Outcome outcome = run("kvcalibrate", words);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  EXPECT_THAT(run("kvcalibrate", {"completion", "basch"}).err, HasSubstr("bash"));
}

TEST(Manual, HasEveryCommandAndNoControlLineOfAHelpText) {
  const std::string page = run("kvcalibrate", {"manual"}).out;
  EXPECT_THAT(page, HasSubstr(".SH NAME\nkvcalibrate \\- "));
  for (const std::string command : {"eval", "compare", "elitekv"}) {
    EXPECT_THAT(page, HasSubstr("\n.SH kvcalibrate " + command + "\n"));
    for (const std::string& option : options_of("kvcalibrate", command)) {
      std::string name;
      for (const char letter : option) name += letter == '-' ? std::string("\\-") : std::string(1, letter);
      EXPECT_THAT(page, HasSubstr("\n.B " + name)) << command;
    }
  }
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('.')) {
      EXPECT_THAT((Words{".TH", ".SH", ".SS", ".TP", ".B", ".I", ".PP", ".br", ".nf", ".fi"}),
                  Contains(line.substr(0, line.find(' '))));
    }
}

TEST(Help, BeginsWithTheOptionsOfTheExamples) {
  const std::string brief = run("kvcalibrate", {"eval", "--help"}).out;
  const std::string all = run("kvcalibrate", {"eval", "--help", "all"}).out;
  EXPECT_LT(std::ranges::count(brief, '\n'), 50);
  EXPECT_THAT(brief, HasSubstr("--model PATH"));
  EXPECT_THAT(brief, HasSubstr("--method NAME"));
  EXPECT_THAT(brief, Not(HasSubstr("--skip-bad-lines")));
  EXPECT_THAT(brief, HasSubstr("`--help all` lists all "));
  EXPECT_THAT(all, HasSubstr("--skip-bad-lines"));
  EXPECT_THAT(all, HasSubstr("ruler-niah-single-1"));
}

TEST(Doctor, NamesThePackageOfAMissingProgram) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cache");
  std::ofstream(folder / "cache/small.gguf") << "12345";
  const std::string program = KVS_BINARY_DIR "/kvspectrum doctor --json";
  const Outcome outcome =
      run("/bin/bash", {"-c", "KVS_CACHE=" + (folder / "cache").string() + " PATH=/nowhere " + program});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Json report = parse_json(outcome.out, "stdout");
  bool found = false;
  for (const Json& part : report.at("parts")) {
    if (part.at("name") == "products") {
      EXPECT_THAT(part.at("found").get<std::string>(), HasSubstr("oneDNN"));
    }
    if (part.at("name") != "rsvg-convert") continue;
    found = true;
    EXPECT_EQ(part.at("found"), "");
    EXPECT_THAT(part.at("remedy").get<std::string>(), HasSubstr("librsvg2-bin"));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(report.at("models"), Json::array({{{"path", "small.gguf"}, {"bytes", 5}}}));
}

TEST(Doctor, PrintsALineForEachPart) {
  const Outcome outcome = run("kvspectrum", {"doctor"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"processor", "memory", "GPU", "decompositions", "models"})
    EXPECT_THAT(outcome.out, HasSubstr(std::string("\n  ") + part));
}

}  // namespace
}  // namespace kvs::testing
