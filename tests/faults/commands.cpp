// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/commands.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/cli/text_fixture.h"
#include "tests/slots/state.h"

namespace kvs::testing {
namespace {

using Words = std::vector<std::string>;

Words with_text(const TemporaryFolder& inputs, const std::string& command, const Words& more,
                const std::string& threads = "1") {
  return words_on_texts(command, inputs / "model", inputs / "tokens.jsonl", more, threads);
}

void expect_done(const std::string& program, const Words& words) {
  const Outcome outcome = run(program, words);
  ASSERT_EQ(outcome.status, 0) << words.front() << ": " << outcome.err;
}

/// Writes a sequence of llama.cpp for a config's model.
void write_slot(const std::filesystem::path& path, const Json& model) {
  const std::size_t values = model.at("kv_heads").get<std::size_t>() * model.at("head_dim").get<std::size_t>();
  write_state(path, test::random_state(12, model.at("layers"), values).state);
}

/// The arguments of all commands, with their outputs in one folder.
struct FaultyArguments {
  const TemporaryFolder& inputs;
  const std::string out, threads, budget = "75%", config = out + "/o.json";

  Words text(const std::string& command, const Words& more) const { return with_text(inputs, command, more, threads); }

  std::vector<FaultyCommand> analyses() const {
    return {
        {"capture", "kvspectrum", text("capture", {"--out", out + "/c.h5"}), true, {"c.h5", "c.h5.manifest.json"}},
        {"capture_split",
         "kvspectrum",
         text("capture", {"--parts", "2", "--out", out + "/c.h5"}),
         true,
         {"c-00001-of-00002.h5", "c-00002-of-00002.h5"}},
        {"merge",
         "kvspectrum",
         {"merge", inputs / "part-00001-of-00002.h5", inputs / "part-00002-of-00002.h5", "--out", out + "/c.h5",
          "--quiet"},
         true,
         {"c.h5", "c.h5.manifest.json"}},
        {"spectrum", "kvspectrum", text("spectrum", {"--out-dir", out + "/s"}), true, {}},
        {"spectrum_of_a_capture",
         "kvspectrum",
         {"spectrum", "--capture", inputs / "c.h5", "--gain", "off", "--threads", threads, "--out-dir", out + "/s",
          "--quiet"},
         true,
         {}},
        {"scores", "kvspectrum", text("scores", {"--lag", "8", "--sinks", "4", "--out", config}), false, {"o.json"}},
        {"retain",
         "kvspectrum",
         text("retain", {"--kept-shares", "0.5", "--prefix", "20", "--out", config}),
         true,
         {"o.json"}},
        {"perturb",
         "kvspectrum",
         {"perturb", "--model", inputs / "model", "--text", inputs / "text.txt", "--wordnet", inputs / "wordnet",
          "--share", "0.05", "--window", "128", "--threads", threads, "--quiet", "--out", config},
         true,
         {"o.json"}},
        {"report", "kvspectrum", {"report", inputs / "results", "--out", out + "/r.html"}, false, {"r.html"}},
    };
  }

  std::vector<FaultyCommand> calibrations() const {
    return {
        {"faedkv",
         "kvcalibrate",
         text("faedkv", {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out", config}),
         true,
         {"o.json"}},
        {"elitekv",
         "kvcalibrate",
         text("elitekv", {"--elite", "2", "--rank", "8", "--out", config}),
         true,
         {"o.json", "o.safetensors"}},
        {"lagkv",
         "kvcalibrate",
         text("lagkv", {"--budget", budget, "--holdout-windows", "1:", "--windows", "0:1", "--out", config}),
         true,
         {"o.json"}},
        {"freqkv",
         "kvcalibrate",
         text("freqkv", {"--budget", budget, "--holdout-windows", "1:", "--windows", "0:1", "--out", config}),
         true,
         {"o.json"}},
        {"store",
         "kvcalibrate",
         text("store", {"--scale", "max", "--per", "head", "--out", config}),
         false,
         {"o.json"}},
        {"transform",
         "kvcalibrate",
         text("transform", {"--budget", "50%", "--sinks", "1", "--recent", "2", "--out", config}),
         true,
         {"o.json", "o.safetensors"}},
        {"kvtc",
         "kvcalibrate",
         text("kvtc", {"--budget", "60%", "--sinks", "1", "--recent", "2", "--block", "4", "--out", config}),
         true,
         {"o.json", "o.safetensors"}},
        {"triattention",
         "kvcalibrate",
         text("triattention", {"--set", "cache_size=16", "interval=4", "--out", config}),
         true,
         {"o.json", "o.safetensors"}},
        {"oscar",
         "kvcalibrate",
         text("oscar", {"--sinks", "1", "--recent", "4", "--out", config}),
         true,
         {"o.json", "o.safetensors"}},
        {"eval",
         "kvcalibrate",
         text("eval", {"--method", "lagkv", "--set", "lag=4", "ratio=0.25", "sinks=2", "--out", config}),
         false,
         {"o.json"}},
        {"compare",
         "kvcalibrate",
         text("compare", {"--methods", "streaming", "--types-with-methods", "none", "--budgets", "50%",
                          "--no-early-stop", "--timed-tokens", "0", "--out", config}),
         true,
         {"o.json"}},
    };
  }

  std::vector<FaultyCommand> other_commands() const {
    return {
        {"export_hf",
         "kvcalibrate",
         {"export", "--to", "elitekv", "--config", inputs / "e.json", "--model", inputs / "model", "--out", out + "/m"},
         false,
         {}},
        {"export_gguf",
         "kvcalibrate",
         {"export", "--to", "gguf-deepseek2", "--config", inputs / "e.json", "--model", inputs / "model", "--out",
          out + "/m.gguf"},
         false,
         {"m.gguf"}},
        {"export_ranks",
         "kvcalibrate",
         {"export", "--to", "elitekv-rank", "--config", inputs / "e.json", "--model", inputs / "model", "--out",
          out + "/m.pkl"},
         false,
         {"m.pkl"}},
        {"slots",
         "kvcalibrate",
         {"slots", "pack", "--config", inputs / "t.json", "--model", inputs / "model", "--slot", inputs / "slot.bin",
          "--threads", threads, "--out", out + "/s.kvslot", "--quiet"},
         false,
         {"s.kvslot"}},
        {"latency",
         "kvcalibrate",
         text("latency", {"--lengths", "8", "--decode", "2", "--repeats", "1", "--cache", "streaming cache_size=8",
                          "--out", config}),
         false,
         {"o.json"},
         true},
        {"generate",
         "kvcalibrate",
         {"generate", "--model", inputs / "model", "--prompt", "all the rays", "--max-new-tokens", "4", "--threads",
          threads, "--quiet"},
         false,
         {},
         false,
         true},
        {"cost",
         "kvcalibrate",
         {"cost", "--model", inputs / "model", "--lengths", "64", "--lag", "8"},
         false,
         {},
         false,
         true},
        {"verify", "kvspectrum", {"verify", inputs / "c.h5"}, false, {}, false, true},
        {"info", "kvspectrum", {"info", inputs / "model"}, false, {}, false, true},
        {"validate", "kvcalibrate", {"validate", inputs / "e.json"}, false, {}, false, true},
    };
  }
};

}  // namespace

bool tries_all() {
  const char* const wanted = std::getenv("KVS_FAULTS");
  return wanted != nullptr && std::string(wanted) == "all";
}

void make_fault_inputs(const TemporaryFolder& inputs) {
  write_tiny_model(inputs / "model");
  std::ofstream(inputs / "model/tokenizer.json") << dump_json(letters_tokenizer());
  write_tokens_file(inputs / "tokens.jsonl", 3, 70);
  write_small_wordnet(inputs / "wordnet");
  write_text_of_rays(inputs / "text.txt", 10);
  expect_done("kvspectrum", with_text(inputs, "capture", {"--out", inputs / "c.h5"}));
  expect_done("kvspectrum", with_text(inputs, "capture", {"--parts", "2", "--out", inputs / "part.h5"}));
  expect_done(
      "kvcalibrate",
      with_text(inputs, "elitekv", {"--elite", "2", "--rank", "8", "--disjoint", "on", "--out", inputs / "e.json"}));
  expect_done("kvcalibrate", with_text(inputs, "transform",
                                       {"--budget", "50%", "--sinks", "1", "--recent", "2", "--predict", "embedding",
                                        "--out", inputs / "t.json"}));
  write_slot(inputs / "slot.bin", parse_json(slurp(inputs / "t.json"), "t.json").at("model"));
  std::filesystem::create_directories(inputs / "results");
  expect_done("kvcalibrate", with_text(inputs, "eval", {"--method", "full", "--out", inputs / "results/full.json"}));
}

std::vector<FaultyCommand> faulty_commands(const TemporaryFolder& inputs, const std::string& out,
                                           const std::string& threads) {
  const FaultyArguments with{inputs, out, threads};
  std::vector<FaultyCommand> all;
  for (const auto& some : {with.analyses(), with.calibrations(), with.other_commands()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::size_t faulty_command_count() { return faulty_commands(TemporaryFolder(), "").size(); }
std::string name_of_faulty_command(std::size_t index) { return faulty_commands(TemporaryFolder(), "").at(index).name; }

}  // namespace kvs::testing
