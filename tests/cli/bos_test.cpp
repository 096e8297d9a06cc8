// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kBos = 46;  // behind the letters

/// The tiny model of letters, whose tokenizer.json puts `<s>` before a text.
class BosPrograms : public TextPrograms {
 protected:
  BosPrograms() {
    write_small_wordnet(folder_ / "wordnet");
    write_text_of_rays(folder_ / "text.txt", 10);
    write_tokenizer(true);
  }

  void write_tokenizer(bool adds_bos) const {
    Json tokenizer = letters_tokenizer();
    tokenizer["added_tokens"].push_back({{"id", kBos},
                                         {"content", "<s>"},
                                         {"single_word", false},
                                         {"lstrip", false},
                                         {"rstrip", false},
                                         {"normalized", false},
                                         {"special", true}});
    if (adds_bos)
      tokenizer["post_processor"] = {
          {"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {kBos}}, {"tokens", {"<s>"}}}}}}};
    std::ofstream(folder_ / "model/tokenizer.json") << dump_json(tokenizer);
    std::ofstream(folder_ / "model/tokenizer_config.json") << R"({"bos_token": "<s>"})";
  }

  /// The output of `words` with --json, and with --bos unless `bos` is empty.
  Json result(const std::string& program, std::vector<std::string> words, const std::string& bos = "") const {
    words.insert(words.end(), {"--model", folder_ / "model", "--threads", "1", "--quiet", "--json"});
    if (!bos.empty()) words.insert(words.end(), {"--bos", bos});
    const Outcome outcome = run(program, words);
    EXPECT_EQ(outcome.status, 0) << words.front() << ": " << outcome.err;
    return outcome.status == 0 ? parse_json(outcome.out, words.front()) : Json::object();
  }
  std::vector<std::string> eval_of(const std::string& option, const std::string& file) const {
    return {"eval", "--method", "full", "--window", "64", option, folder_ / file};
  }
  double perplexity(const std::vector<std::string>& words, const std::string& bos = "") const {
    return result("kvcalibrate", words, bos).value("ppl", 0.0);
  }
};

TEST_F(BosPrograms, EveryCommandThatReadsATextDoesWhatTheModelsFilesAskFor) {
  const std::string text = folder_ / "text.txt", out = folder_ / "out.json";
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands{
      {"kvcalibrate", {"eval", "--method", "full", "--text", text, "--window", "64"}},
      {"kvcalibrate", {"eval", "--method", "full", "--task", "needle", "--lengths", "600", "--answer-tokens", "2"}},
      {"kvcalibrate", {"generate", "--prompt", "if all", "--max-new-tokens", "4"}},
      {"kvcalibrate",
       {"latency", "--text", text, "--window", "64", "--lengths", "32", "--decode", "4", "--repeats", "1"}},
      {"kvcalibrate",
       {"compare", "--methods", "streaming", "--budgets", "50%", "--text", text, "--window", "64", "--out", out,
        "--force", "--timed-tokens", "0"}},
      {"kvspectrum", {"scores", "--text", text, "--window", "64", "--lag", "8", "--out", out, "--force"}},
      {"kvspectrum", {"retain", "--text", text, "--window", "64", "--out", out, "--force"}},
      {"kvspectrum",
       {"perturb", "--text", text, "--window", "128", "--share", "0.1", "--out", out, "--force", "--wordnet",
        folder_ / "wordnet"}}};
  for (const auto& [program, words] : commands) {
    const auto bos = [&](const std::string& choice) {
      return result(program, words, choice).value("bos", Json("missing"));
    };
    EXPECT_EQ(bos(""), kBos) << words.front();
    EXPECT_EQ(bos("off"), Json()) << words.front();
    write_tokenizer(false);
    EXPECT_EQ(bos("auto"), Json()) << words.front();
    EXPECT_EQ(bos("on"), kBos) << words.front();
    write_tokenizer(true);
  }
}

TEST_F(BosPrograms, AutoComputesWhatOnComputes) {
  const auto words = eval_of("--text", "text.txt");
  const double on = perplexity(words, "on"), off = perplexity(words, "off");
  EXPECT_NE(on, off);
  EXPECT_EQ(perplexity(words), on);
  write_tokenizer(false);
  EXPECT_EQ(perplexity(words), off);
  const Json ids = result("kvcalibrate", {"generate", "--prompt", "a", "--max-new-tokens", "1"}, "on").at("prompt_ids");
  EXPECT_EQ(ids, Json({kBos, 1}));
  EXPECT_EQ(result("kvcalibrate", {"generate", "--prompt", "<s>a", "--max-new-tokens", "1"}, "on").at("prompt_ids"),
            ids);
}

TEST_F(BosPrograms, QuestionsAreAsLongAsAskedForWithIt) {
  constexpr int kContext = 600, kRoom = 32;
  Json config = parse_json(slurp(folder_ / "model/config.json"), "config.json");
  config["max_position_embeddings"] = kContext;
  std::ofstream(folder_ / "model/config.json") << dump_json(config);
  for (const char* seed : {"0", "1", "2", "3", "4", "5"}) {
    const Json found = result("kvcalibrate", {"eval", "--method", "full", "--task", "needle", "--lengths", "600",
                                              "--depths", "0,30,60", "--seed", seed});
    EXPECT_LE(found.at("prompt_tokens").back().get<int>(), kContext - kRoom) << seed;
  }
}

TEST_F(BosPrograms, IdsOfAFileAreWindowsAsThoseOfTheSameText) {
  std::ofstream(folder_ / "short.txt") << std::string(63, 'a');
  const Json ids(std::vector<int>(63, 1));
  Json with_bos = ids;
  with_bos.insert(with_bos.begin(), kBos);
  std::ofstream(folder_ / "ids.jsonl") << ids.dump() << '\n';
  std::ofstream(folder_ / "begun.jsonl") << with_bos.dump() << '\n';
  const double expected = perplexity(eval_of("--text", "short.txt"));
  EXPECT_EQ(perplexity(eval_of("--tokens-file", "ids.jsonl")), expected);
  EXPECT_EQ(perplexity(eval_of("--tokens-file", "begun.jsonl")), expected);
  EXPECT_EQ(perplexity(eval_of("--tokens-file", "begun.jsonl"), "off"), expected);
  // Without a tokenizer nothing says what ids begin with: they are taken as they are.
  std::filesystem::remove(folder_ / "model/tokenizer.json");
  EXPECT_EQ(perplexity(eval_of("--tokens-file", "begun.jsonl")), expected);
  auto loud = eval_of("--tokens-file", "begun.jsonl");
  loud.insert(loud.end(), {"--model", folder_ / "model"});
  EXPECT_THAT(run("kvcalibrate", loud).err, HasSubstr("note: no begin-of-sequence token goes before the windows"));
  loud.insert(loud.end(), {"--bos", "off"});
  EXPECT_THAT(run("kvcalibrate", loud).err, Not(HasSubstr("begin-of-sequence")));
}

TEST_F(BosPrograms, ARunIsResumedWithTheSameBosAlone) {
  auto words = eval_of("--text", "text.txt");
  words.insert(words.end(), {"--out", folder_ / "e.json", "--model", folder_ / "model", "--quiet"});
  ASSERT_EQ(run("kvcalibrate", words).status, 0);
  words.emplace_back("--resume");
  EXPECT_EQ(run("kvcalibrate", words).status, 0);
  write_tokenizer(false);
  EXPECT_EQ(run("kvcalibrate", words).status, 7);
}

TEST_F(BosPrograms, AConfigSaysWhatItsDocumentsBeganWith) {
  const auto store = [&](const std::string& bos) {
    std::vector<std::string> words{"store", "--text", folder_ / "text.txt", "--window", "64", "--force"};
    words.insert(words.end(), {"--out", folder_ / "s.json"});
    return result("kvcalibrate", words, bos).at("calibration").value("bos", Json("missing"));
  };
  EXPECT_EQ(store("auto"), kBos);
  expect_valid("s.json");
  EXPECT_EQ(store("off"), Json());
  expect_valid("s.json");
}

TEST_F(BosPrograms, ResultsFromACaptureSayWhatItsDocumentsBeganWith) {
  const std::string capture = folder_ / "c.h5";
  const auto expect_bos = [&](const std::string& choice, const Json& expected) {
    result("kvspectrum",
           {"capture", "--text", folder_ / "text.txt", "--window", "64", "--states", "q_pre,k_pre,v", "--out", capture,
            "--force"},
           choice);
    const auto on_capture = [&](const std::string& program, std::vector<std::string> words) {
      words.insert(words.end(), {"--capture", capture, "--threads", "1", "--quiet", "--force"});
      const Outcome outcome = run(program, words);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
    };
    on_capture("kvspectrum", {"spectrum", "--out-dir", folder_ / "spectrum"});
    EXPECT_EQ(config("spectrum/spectrum.json").value("bos", Json("missing")), expected);
    on_capture("kvcalibrate", {"elitekv", "--elite", "2", "--out", folder_ / "elite.json"});
    EXPECT_EQ(config("elite.json").at("calibration").value("bos", Json("missing")), expected);
    expect_valid("elite.json");
  };
  expect_bos("auto", kBos);
  expect_bos("off", Json());
  const Json live = result("kvcalibrate", {"elitekv", "--elite", "2", "--text", folder_ / "text.txt", "--window", "64",
                                           "--out", folder_ / "live.json"});
  EXPECT_EQ(config("elite.json").at("calibration").at("tokenizer_sha256"),
            live.at("calibration").at("tokenizer_sha256"));
}

TEST_F(BosPrograms, InfoSaysWhetherTheFilesAskForIt) {
  const auto info = [&] { return run("kvspectrum", {"info", folder_ / "model"}).out; };
  EXPECT_THAT(info(), HasSubstr("id 46, begins every window and prompt"));
  write_tokenizer(false);
  EXPECT_THAT(info(), HasSubstr("id 46, not put in: the model's files do not ask for it"));
}

}  // namespace
}  // namespace kvs::testing
