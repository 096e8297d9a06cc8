// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kChatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

class TracePrograms : public TextPrograms {
 protected:
  TracePrograms() {
    write_tokens_file(folder_ / "trace.jsonl", 5, 24);
    std::ofstream(folder_ / "prompts.jsonl") << "{\"prompt\": \"if all the rays\"}\n{\"prompt\": \"ice is cold\"}\n";
    std::ofstream(folder_ / "chat.jsonl") << R"({"messages": [{"role": "user", "content": "why?"}]})" << '\n';
  }
  Outcome evaluate(const std::vector<std::string>& how) const {
    std::vector<std::string> words{"eval", "--model", folder_ / "model", "--quiet", "--threads", "1"};
    words.insert(words.end(), how.begin(), how.end());
    return run("kvcalibrate", words);
  }
  /// eval --trace 16 on the windows of a file of tokens.
  std::vector<std::string> traced(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"--trace", "16", "--tokens-file", folder_ / "trace.jsonl", "--window", "12"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json result(std::vector<std::string> how) const {
    how.emplace_back("--json");
    const Outcome outcome = evaluate(how);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? parse_json(outcome.out, "eval") : Json();
  }
  void refuse(int status, const std::vector<std::string>& how, const std::string& part) const {
    const Outcome outcome = evaluate(how);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  void set_config(const std::string& file, const Json& json) const {
    std::ofstream(folder_ / ("model/" + file)) << dump_json(json);
  }
};

/// A result without what differs from run to run.
Json without_run(Json json) {
  for (const char* name : {"command", "seconds"}) json.erase(name);
  return json;
}

const std::vector<std::string> kStreaming{"--method", "streaming", "--set", "cache_size=16", "sinks=2"};

std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(TracePrograms, TheFullCacheDoesNotDiverge) {
  for (const std::vector<std::string>& drawn : {std::vector<std::string>{}, {"--temperature", "0.7", "--seed", "3"}}) {
    const Json found = result(traced(joined({"--method", "full"}, drawn)));
    EXPECT_EQ(found.at("tokens_scored"), 10 * 16);
    EXPECT_NEAR(found.at("kl").at("mean").get<double>(), 0, 1e-10);
    EXPECT_EQ(found.at("top1").at("mean"), 1.0);
    EXPECT_EQ(found.at("own").at("undiverged"), 1.0);
    EXPECT_EQ(found.at("own").at("median"), nullptr);
    EXPECT_EQ(found.at("bytes_ratio"), 1.0);
    EXPECT_EQ(found.at("trace").contains("seed"), !drawn.empty());
  }
}

TEST_F(TracePrograms, ReusedTracesGiveTheSameResult) {
  const std::string traces = folder_ / "t.traces.json";
  for (const std::vector<std::string>& drawn : {std::vector<std::string>{}, {"--temperature", "0.7", "--seed", "3"}}) {
    const Json fresh = result(joined(traced(joined(kStreaming, drawn)), {"--trace-out", traces, "--force"}));
    EXPECT_LT(fresh.at("own").at("undiverged"), 1.0);
    const Json reused = result(joined({"--trace-from", traces}, kStreaming));
    EXPECT_EQ(without_run(reused), without_run(fresh));
    // The prompts may be given again.
    const Json again = result(
        joined({"--trace-from", traces, "--tokens-file", folder_ / "trace.jsonl", "--window", "12"}, kStreaming));
    EXPECT_EQ(without_run(again), without_run(fresh));
  }
}

TEST_F(TracePrograms, TracesOfOthersAreRefused) {
  const std::string traces = folder_ / "t.traces.json";
  ASSERT_EQ(evaluate(traced({"--method", "full", "--trace-out", traces})).status, 0);
  refuse(7, {"--trace-from", traces, "--method", "full", "--prompts", folder_ / "prompts.jsonl"},
         "t.traces.json: /prompts_sha256: found");
  const Json good = parse_json(slurp(traces), traces);
  const auto changed = [&](const std::string& place, const Json& value, int status, const std::string& part) {
    Json bad = good;
    bad[Json::json_pointer(place)] = value;
    std::ofstream(traces) << dump_json(bad);
    refuse(status, {"--trace-from", traces, "--method", "full"}, part);
  };
  changed("/model/sha256", "0", 7, "/model/sha256: found 0");
  changed("/traces/0/prompt/3", 9, 3, "/prompts_sha256: found");
  changed("/traces/0/ids/3", 64, 3, "/traces/0/ids/3: found 64, expected an id from 0 to 63");
  changed("/traces/0/ids", Json::array(), 3, "/traces/0/ids: found");
  changed("/traces", Json::array(), 3, "/traces: found");
  changed("/settings/tokens", 4, 3, "/traces/0/ids: found");
  changed("/version", 2, 3, "/version: found 2");
  changed("/format", "x", 3, "/format: found");
  std::ofstream(traces) << "{}";
  refuse(3, {"--trace-from", traces, "--method", "full"}, "t.traces.json");
}

TEST_F(TracePrograms, PromptsComeFromAFile) {
  const std::string prompts = folder_ / "prompts.jsonl";
  const Json found = result(joined({"--trace", "6", "--prompts", prompts}, kStreaming));
  EXPECT_EQ(found.at("samples").size(), 2U);
  EXPECT_EQ(found.at("samples").at(0).at("prompt_tokens"), 15);
  EXPECT_EQ(found.at("samples").at(1).at("prompt_tokens"), 11);
  EXPECT_EQ(found.at("text_sha256").size(), 1U);
  refuse(3, {"--trace", "6", "--prompts", folder_ / "chat.jsonl", "--method", "full"},
         "chat.jsonl: line 1: /messages: found");
  for (const auto& [line, part] : {std::pair("{\"prompt\": 1}", "line 1: /prompt: found 1"),
                                   {"{\"prompt\": \"a\", \"messages\": []}", "expected either prompt or messages"},
                                   {"{\"prompt\": \"\"}", "expected a prompt of at least one token"},
                                   {"{}", "expected either prompt or messages"},
                                   {"no", "line 1"}}) {
    std::ofstream(folder_ / "bad.jsonl") << line << '\n';
    refuse(3, {"--trace", "6", "--prompts", folder_ / "bad.jsonl", "--method", "full"}, part);
  }
  std::ofstream(folder_ / "bad.jsonl") << "\n";
  refuse(5, {"--trace", "6", "--prompts", folder_ / "bad.jsonl", "--method", "full"}, "found no prompt");
}

TEST_F(TracePrograms, ChatsAreWrittenInTheModelsTemplate) {
  const std::vector<std::string> words{"--trace", "6",        "--prompts", folder_ / "chat.jsonl",
                                       "--chat",  "--method", "full"};
  refuse(4, words, "chat template: found no chat template, expected one of ChatML");
  set_config("tokenizer_config.json", {{"chat_template", kChatml}});
  const Json found = result(words);
  EXPECT_EQ(found.at("chat"), "ChatML");
  // <|im_start|>user\nwhy?<|im_end|>\n<|im_start|>assistant\n, one token a character.
  EXPECT_EQ(found.at("samples").at(0).at("prompt_tokens"), 12 + 5 + 4 + 10 + 1 + 12 + 10);
  set_config("tokenizer_config.json", {{"chat_template", "{{ messages }}"}});
  refuse(4, words, "found a chat template that begins with \"{{ messages }}\"");
}

TEST_F(TracePrograms, EndTokensOfTheModelEndTraces) {
  const Json free = result(traced({"--method", "full"}));
  EXPECT_EQ(free.at("own").at("lengths").at("ended"), 0.0);
  const std::string traces = folder_ / "t.traces.json";
  ASSERT_EQ(evaluate(traced({"--method", "full", "--trace-out", traces})).status, 0);
  const Json id = parse_json(slurp(traces), traces).at("traces").at(0).at("ids").at(4);
  set_config("generation_config.json", {{"eos_token_id", {id}}});
  const Json ended = result(traced({"--method", "full"}));
  EXPECT_EQ(ended.at("trace").at("end_tokens"), Json::array({id}));
  EXPECT_GT(ended.at("own").at("lengths").at("ended"), 0.0);
  EXPECT_LE(ended.at("samples").at(0).at("tokens"), 5);
  EXPECT_EQ(ended.at("samples").at(0).at("ended"), true);
  set_config("generation_config.json", {{"eos_token_id", 64}});
  refuse(3, traced({"--method", "full"}), "generation_config.json: /eos_token_id: found 64");
}

TEST_F(TracePrograms, MethodsThatActAtAPrefixTakeThePrompt) {
  const Json found = result(traced({"--method", "snapkv", "--set", "cache_size=8", "window=4", "kernel=3"}));
  EXPECT_EQ(found.at("prefill"), "context");
  EXPECT_LT(found.at("bytes_ratio"), 1.0);
  refuse(2, traced({"--method", "lagkv", "--set", "prefix=8"}), "--set prefix: cannot be combined with --trace");
}

TEST_F(TracePrograms, AResumedRunWritesTheSameBytes) {
  const std::string out = folder_ / "o.json";
  const std::vector<std::string> words = traced(joined(kStreaming, {"--out", out}));
  ASSERT_EQ(evaluate(words).status, 0);
  const std::string whole = slurp(out);
  for (const char* ending : {"_trace.svg", "_trace.png"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("o" + std::string(ending))));
  refuse(7, words, "o.json");
  EXPECT_THAT(evaluate(joined(words, {"--resume"})).out, HasSubstr("finished before"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "."))
    if (entry.path().filename().string().starts_with("o")) std::filesystem::remove(entry.path());
  std::vector<std::string> killed{"eval", "--model", folder_ / "model", "--quiet", "--threads", "1"};
  killed.insert(killed.end(), words.begin(), words.end());
  (void)run_and_interrupt("kvcalibrate", killed, out + ".journal");
  EXPECT_EQ(evaluate(joined(words, {"--resume"})).status, 0);
  EXPECT_EQ(slurp(out), whole);
  EXPECT_FALSE(std::filesystem::exists(out + ".journal"));
}

TEST_F(TracePrograms, OptionsThatDoNotGoTogetherAreRefused) {
  const std::string prompts = folder_ / "prompts.jsonl";
  refuse(2, traced({"--method", "full", "--stride", "4"}), "--stride: cannot be combined with --trace");
  refuse(2, traced({"--method", "full", "--decode", "4"}), "--decode: cannot be combined with --trace");
  refuse(2, traced({"--method", "lagkv", "--reference", "none"}), "--reference: cannot be combined with --trace");
  refuse(2, traced({"--method", "full", "--save-config", folder_ / "c.json"}), "--save-config: cannot be combined");
  refuse(2, traced({"--method", "full", "--task", "passkey"}), "--task");
  refuse(2, traced({"--method", "full", "--seed", "1"}), "--seed: needs --task or --temperature");
  refuse(2, traced({"--method", "full", "--temperature", "0"}), "--temperature: found");
  refuse(2, traced({"--method", "full", "--prompts", prompts}), "--tokens-file: cannot be combined with --prompts");
  refuse(2, traced({"--method", "full", "--chat"}), "--chat: needs --prompts");
  refuse(2, traced({"--method", "full", "--trace-from", folder_ / "t"}),
         "--trace: cannot be combined with --trace-from");
  refuse(2, {"--trace", "6", "--method", "full"}, "missing option --text PATH");
  refuse(2, {"--prompts", prompts, "--method", "full"}, "--prompts: needs --trace or --trace-from");
  refuse(2, {"--trace", "6", "--prompts", prompts, "--chat", "--bos", "on", "--method", "full"},
         "--bos: cannot be combined with --chat");
}

}  // namespace
}  // namespace kvs::testing
