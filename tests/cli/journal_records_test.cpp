// SPDX-License-Identifier: Apache-2.0
// Journals whose lines are whole and say what no run would have written.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "io/journal.h"
#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

/// Every place inside a record, as pointers.
void collect(const Json& value, const Json::json_pointer& at, std::vector<Json::json_pointer>& places) {
  places.push_back(at);
  if (value.is_object())
    for (const auto& [key, member] : value.items()) collect(member, at / key, places);
  if (value.is_array())
    for (std::size_t n = 0; n < std::min<std::size_t>(value.size(), 3); ++n) collect(value[n], at / n, places);
}

/// What stands in the place of a value; `none` takes a member away, an array's last element with it.
const std::vector<Json> kOthers{
    nullptr, -1, 1e300, std::uint64_t{1} << 63,         "text", Json::array(), Json::object(),
    true,    0,  7.5,   Json::array({Json::array({1})})};

class JournalRecords : public TextPrograms {
 protected:
  /// Kills the command after some records, then tries changed ones with the right CRC, each of which has to end with 0,
  /// or with 3 or 7 and one line.
  void expect_read_with_care(const std::string& program, const std::vector<std::string>& words, int records) {
    const std::filesystem::path out = folder_ / "out", journal = out / "o.json.journal";
    bool killed = false;
    for (int wanted = records; wanted > 0 && !killed; --wanted) {
      std::filesystem::remove_all(out);
      std::filesystem::create_directory(out);
      killed = run_until(program, words, journal, wanted);
    }
    ASSERT_TRUE(killed) << "ended before it kept a record";
    const Journal::Content kept = Journal::read(journal);
    ASSERT_FALSE(kept.records.empty());
    std::filesystem::remove_all(folder_ / "kept");
    std::filesystem::copy(out, folder_ / "kept", std::filesystem::copy_options::recursive);
    auto again = words;
    again.emplace_back("--resume");
    for (const auto& [at, place, other] : changes(kept.records)) {
      restore(out);
      auto changed = kept.records;
      changed[at][place] = other;
      write(journal, kept.identity, changed);
      const Outcome outcome = run(program, again);
      EXPECT_TRUE(outcome.status == 0 || outcome.status == 3 || outcome.status == 7)
          << words.front() << ": record " << at << " " << place.to_string() << " = " << other << ": " << outcome.status
          << " " << outcome.err;
      if (outcome.status != 0) {
        EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
      }
    }
  }

 private:
  struct Change {
    std::size_t record;
    Json::json_pointer place;
    Json other;
  };

  /// All changes, or a few at random.
  static std::vector<Change> changes(const std::vector<Json>& records) {
    std::vector<Change> all;
    for (std::size_t at = 0; at < records.size(); ++at) {
      std::vector<Json::json_pointer> places;
      collect(records[at], Json::json_pointer(), places);
      for (const auto& place : places)
        for (const Json& other : kOthers) all.push_back({at, place, other});
    }
    const char* const how = std::getenv("KVS_RECORDS");
    constexpr std::size_t kFew = 24, kMany = 400;
    std::mt19937 random(5);
    std::ranges::shuffle(all, random);
    all.resize(std::min(all.size(), how == nullptr ? kFew : kMany));
    return all;
  }

  void restore(const std::filesystem::path& out) const {
    std::filesystem::remove_all(out);
    std::filesystem::copy(folder_ / "kept", out, std::filesystem::copy_options::recursive);
  }
  static void write(const std::filesystem::path& path, const Json& identity, const std::vector<Json>& records) {
    std::filesystem::remove(path);
    Journal journal = Journal::create(path, identity);
    for (const Json& record : records) journal.append(record);
  }
};

TEST_F(JournalRecords, OfCompare) {
  std::ofstream(folder_ / "other.txt") << std::string(100, 'a') + ' ' + std::string(200, 'b');
  expect_read_with_care("kvcalibrate",
                        with_text("compare", {"--methods",
                                              "full,streaming,lagkv,transform",
                                              "--budgets",
                                              "75%,50%",
                                              "--types",
                                              "q4_0",
                                              "--types-with-methods",
                                              "none",
                                              "--calibration-text",
                                              folder_ / "other.txt",
                                              "--calibration-window",
                                              "48",
                                              "--prefix",
                                              "20",
                                              "--timed-tokens",
                                              "0",
                                              "--task",
                                              "needle",
                                              "--lengths",
                                              "600",
                                              "--depths",
                                              "0",
                                              "--answer-tokens",
                                              "2",
                                              "--time",
                                              "1h",
                                              "--out",
                                              folder_ / "out/o.json"}),
                        30);
}

TEST_F(JournalRecords, OfEval) {
  const std::vector<std::string> words =
      with_text("eval", {"--method", "streaming", "--set", "cache_size=16", "--out", folder_ / "out/o.json"});
  expect_read_with_care("kvcalibrate", words, 5);
  auto compared = words;
  compared.insert(compared.end(), {"--reference", "none"});
  expect_read_with_care("kvcalibrate", compared, 5);
}

TEST_F(JournalRecords, OfTasks) {
  expect_read_with_care("kvcalibrate", {"eval",      "--model",  folder_ / "model", "--task",   "needle",
                                        "--lengths", "600",      "--depths",        "0,50,100", "--answer-tokens",
                                        "2",         "--method", "streaming",       "--set",    "cache_size=64",
                                        "--threads", "1",        "--quiet",         "--out",    folder_ / "out/o.json"},
                        2);
}

TEST_F(JournalRecords, OfTraces) {
  write_tokens_file(folder_ / "many.jsonl", 60, 24);  // batches of 16
  expect_read_with_care("kvcalibrate",
                        {"eval", "--model", folder_ / "model", "--trace", "24", "--tokens-file", folder_ / "many.jsonl",
                         "--window", "12", "--method", "streaming", "--set", "cache_size=16", "sinks=2", "--threads",
                         "1", "--quiet", "--out", folder_ / "out/o.json"},
                        2);
}

TEST_F(JournalRecords, OfBudgets) {
  const auto budget = [&](const std::string& method, const std::string& size) {
    return with_text(method, {"--budget", size, "--per-layer-rounds", "1", "--out", folder_ / "out/o.json"});
  };
  expect_read_with_care("kvcalibrate", budget("freqkv", "50%"), 60);
  expect_read_with_care("kvcalibrate", budget("lagkv", "75%"), 20);
}

TEST_F(JournalRecords, OfFaedkv) {
  expect_read_with_care("kvcalibrate", faedkv("out/o.json"), 8);
  expect_read_with_care("kvcalibrate", faedkv("out/o.json", {"--confidence", "0.9"}), 8);
}

TEST_F(JournalRecords, OfRetain) {
  expect_read_with_care("kvspectrum", with_text("retain", {"--sinks", "2", "--out", folder_ / "out/o.json"}), 3);
}

TEST_F(JournalRecords, OfPerturb) {
  write_small_wordnet(folder_ / "wordnet");
  write_text_of_rays(folder_ / "text.txt", 40);
  expect_read_with_care(
      "kvspectrum",
      {"perturb", "--model", folder_ / "model", "--text", folder_ / "text.txt", "--window", "128", "--share", "0.05",
       "--wordnet", folder_ / "wordnet", "--threads", "1", "--quiet", "--out", folder_ / "out/o.json"},
      3);
}

}  // namespace
}  // namespace kvs::testing
