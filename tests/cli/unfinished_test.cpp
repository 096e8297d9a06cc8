// SPDX-License-Identifier: Apache-2.0
// The files that a run leaves if it was refused late, cannot be finished, or was killed.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class UnfinishedRuns : public CalibratePrograms {
 protected:
  UnfinishedRuns() { std::filesystem::create_directory(folder_ / "out"); }

  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out"))
      names.push_back(entry.path().filename());
    return names;
  }
  void expect_refused(const std::string& program, std::vector<std::string> words, int status, const std::string& part) {
    const Outcome outcome = run(program, words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_THAT(left(), IsEmpty()) << words.front();
  }
  /// Weights that are finite, and activations that are not.
  void make_overflowing_model() const {
    std::filesystem::copy(folder_ / "model", folder_ / "big", std::filesystem::copy_options::recursive);
    std::fstream file(folder_ / "big/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    const float large = 1e15F;  // its fourth power is none
    const std::size_t bytes = std::filesystem::file_size(folder_ / "big/model.safetensors") - sizeof header - header;
    file.seekp(static_cast<std::streamoff>(sizeof header + header));
    for (std::size_t n = 0; n < bytes / sizeof large; ++n)
      file.write(reinterpret_cast<const char*>(&large), sizeof large);
  }
};

TEST_F(UnfinishedRuns, NamesThatLeaveNoRoomForOthersAreRefusedFirst) {
  const std::string name(244, 'n');
  expect_refused("kvspectrum", with_text("capture", {"--out", folder_ / ("out/" + name + ".h5")}), 2,
                 "found a file name of 259 bytes, expected at most 255");
  expect_refused("kvcalibrate", faedkv("out/" + name + ".json"), 2, "found a file name of ");
}

TEST_F(UnfinishedRuns, NamesThatAreNotUtf8AreRefusedFirst) {
  expect_refused("kvcalibrate", faedkv("out/\xff.json"), 2, "out/\\xff.json: found bytes that are not UTF-8");
}

TEST_F(UnfinishedRuns, ThatDidNothingLeaveNoJournal) {
  expect_refused("kvcalibrate", with_text("lagkv", {"--budget", "5%", "--out", folder_ / "out/l.json"}), 2,
                 "expected at least");
}

TEST_F(UnfinishedRuns, ThatCannotBeFinishedLeaveNothing) {
  make_overflowing_model();
  const std::string problem = "found NaN or infinity";
  expect_refused("kvspectrum", with_text("capture", {"--out", folder_ / "out/c.h5"}, "big"), 5, problem);
  expect_refused("kvspectrum", with_text("spectrum", {"--out-dir", folder_ / "out/s"}, "big"), 5, problem);
  expect_refused("kvspectrum", with_text("retain", {"--sinks", "2", "--out", folder_ / "out/r.json"}, "big"), 5,
                 problem);
  expect_refused("kvcalibrate", with_text("elitekv", {"--elite", "2", "--out", folder_ / "out/e.json"}, "big"), 5,
                 problem);
  expect_refused("kvcalibrate", with_text("eval", {"--method", "full", "--out", folder_ / "out/v.json"}, "big"), 5,
                 problem);
}

TEST_F(UnfinishedRuns, AreClearedOfTheFiguresThatTheyBegan) {
  constexpr const char* kNobody = "4194305";  // above Linux' largest process id
  for (const std::string of : {"f_ablation.svg", "f.json", "f_filtering.png"})
    std::ofstream(folder_ / ("out/." + of + "." + kNobody + ".tmp")) << "begun";
  std::ofstream(folder_ / (std::string("out/.g_ablation.svg.") + kNobody + ".tmp")) << "another run's";
  ASSERT_EQ(run("kvcalibrate", faedkv("out/f.json")).status, 0);
  std::vector<std::string> hidden;
  for (const std::string& name : left())
    if (name.starts_with('.')) hidden.push_back(name);
  EXPECT_THAT(hidden, ::testing::ElementsAre(HasSubstr("g_ablation.svg")));
}

TEST_F(UnfinishedRuns, NamesFromFilesAreEscapedInNotes) {
  Json model = parse_json(slurp(folder_ / "model/config.json"), "config.json");
  model["evil\x1b[2J\xc2\x9bkey"] = 1;
  std::ofstream(folder_ / "model/config.json") << dump_json(model);
  std::vector<std::string> words = with_text("eval", {"--method", "full"});
  std::erase(words, "--quiet");
  const Outcome outcome = run("kvcalibrate", words);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("evil\\x1b[2J\\xc2\\x9bkey"), Not(HasSubstr("\x1b"))));
}

TEST_F(UnfinishedRuns, ProjectionsOfZerosAreNamed) {
  const std::string name = "model.layers.2.self_attn.k_proj.weight";
  std::string bytes = slurp(folder_ / "model/model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto range = parse_json(bytes.substr(sizeof header, header), "header").at(name).at("data_offsets");
  const auto begin = sizeof header + header + range[0].get<std::size_t>();
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), range[1].get<int>() - range[0].get<int>(), '\0');
  std::ofstream(folder_ / "model/model.safetensors", std::ios::binary) << bytes;
  std::vector<std::string> words = with_text("eval", {"--method", "full"});
  std::erase(words, "--quiet");
  const Outcome outcome = run("kvcalibrate", words);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("warning: " + name + ": all weights are zero\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("q_proj")));
}

TEST_F(UnfinishedRuns, OfManyProjectionsOfZerosTheFirstAreNamed) {
  std::string bytes = slurp(folder_ / "model/model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const Json tensors = parse_json(bytes.substr(sizeof header, header), "header");
  for (const auto& [name, tensor] : tensors.items()) {
    if (name.find("_proj.weight") == std::string::npos) continue;
    const auto& range = tensor.at("data_offsets");
    const auto begin = sizeof header + header + range[0].get<std::size_t>();
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), range[1].get<int>() - range[0].get<int>(), '\0');
  }
  std::ofstream(folder_ / "model/model.safetensors", std::ios::binary) << bytes;
  std::vector<std::string> words = with_text("eval", {"--method", "full"});
  std::erase(words, "--quiet");
  const Outcome outcome = run("kvcalibrate", words);
  EXPECT_EQ(outcome.status, 0);
  // 4 layers of 7 projections, of which 8 are named.
  EXPECT_THAT(outcome.err, HasSubstr("warning: model.layers.1.self_attn.q_proj.weight: all weights are zero\n"));
  EXPECT_THAT(outcome.err, HasSubstr("warning: all weights of 20 more projections are zero\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("layers.2")));
}

TEST_F(UnfinishedRuns, LongNamesOfOutputsBesideAreRefusedFirst) {
  const std::string name(250, 'n');
  expect_refused("kvcalibrate", with_text("compare", {"--budgets", "50%", "--out", folder_ / ("out/" + name)}), 2,
                 "found a file name of ");
}

TEST_F(UnfinishedRuns, AreClearedOfTheTensorsThatTheyBegan) {
  std::ofstream(folder_ / "out/.t.safetensors.4194305.tmp") << "begun";
  ASSERT_EQ(run("kvcalibrate", with_text("transform", {"--budget", "50%", "--out", folder_ / "out/t.json"})).status, 0);
  EXPECT_THAT(left(), ::testing::UnorderedElementsAre("t.json", "t.safetensors"));
}

TEST_F(UnfinishedRuns, SharesOfNothingAreRefused) {
  expect_refused("kvcalibrate", faedkv("out/k.json", {"--keep", "0"}), 2,
                 "--keep: found '0', expected a number above 0 and at most 1");
}

/// The last line of `err`, after "to go on: ".
std::string command_that_goes_on(const std::string& err) {
  const std::size_t at = err.find("to go on: ");
  return at == std::string::npos ? "" : err.substr(at + std::string("to go on: ").size());
}

TEST_F(UnfinishedRuns, SayHowFarTheyAreAndTheCommandThatGoesOn) {
  const std::string path = "PATH='" KVS_BINARY_DIR "':\"$PATH\" exec ";
  write_tokens_file(folder_ / "tokens.jsonl", 200, 70);
  const std::filesystem::path out = folder_ / "out/it's $(new).json";
  const Outcome stopped =
      run_and_interrupt("kvcalibrate", faedkv("out/it's $(new).json", {"--force"}), out.native() + ".journal");
  ASSERT_EQ(stopped.status, 130);
  EXPECT_THAT(stopped.err,
              ::testing::MatchesRegex("kvcalibrate: interrupted at [0-9]+ % of faedkv; to go on: kvcalibrate "
                                      "faedkv .* --resume\n"));
  const Outcome done = run("/bin/bash", {"-c", path + command_that_goes_on(stopped.err)});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(std::filesystem::exists(out));
  EXPECT_EQ(parse_json(slurp(out), "c").at("calibration").at("command").get<std::string>() + " --resume\n",
            command_that_goes_on(stopped.err));
}

}  // namespace
}  // namespace kvs::testing
