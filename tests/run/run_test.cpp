// SPDX-License-Identifier: Apache-2.0
#include "run/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;
using State = RunOutputs::State;

/// A command of the tests, on the tiny model and three texts.
class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 3, 70);
  }
  Options options(const std::vector<std::string>& more = {}) const {
    OptionTable table("kvspectrum test --model PATH --text PATH --out FILE", "A test.", {});
    table.value("out", "FILE", "the result").required();
    add_model_options(table);
    add_text_options(table);
    add_run_options(table, true);
    std::vector<std::string> words = words_on_texts("test", folder_ / "model", folder_ / "tokens.jsonl", more);
    words.erase(words.begin());
    words.insert(words.end(), {"--out", out_});
    std::ostringstream help;
    return *table.parse(words, help);
  }
  /// Up to the loaded model.
  static void begin(kvs::Run& run, State state) {
    run.take_outputs({.main = run.options().text("out"), .state = state});
    run.open_model();
    run.read_texts();
    run.load();
  }
  static ErrorCode refusal_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  }
  bool exists(const std::string& ending) const { return std::filesystem::exists(out_.string() + ending); }

  TemporaryFolder folder_;
  std::filesystem::path out_ = folder_ / "o.json";
};

TEST_F(RunTest, HoldsTheLockOfItsOutputs) {
  const Options given = options();
  kvs::Run run(given);
  run.take_outputs({.main = out_});
  EXPECT_TRUE(exists(".lock"));
  kvs::Run other(given);
  EXPECT_EQ(refusal_of([&] { other.take_outputs({.main = out_}); }), ErrorCode::kConflict);
}

TEST_F(RunTest, WritesNothingOverAnInput) {
  const Options given = options();
  kvs::Run run(given);
  EXPECT_EQ(refusal_of([&] { run.take_outputs({.main = folder_ / "tokens.jsonl"}); }), ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists((folder_ / "tokens.jsonl").string() + ".lock"));
}

TEST_F(RunTest, KeepsAJournalUntilItsResultIsInPlace) {
  const Options given = options();
  kvs::Run run(given);
  begin(run, State::kJournal);
  run.journal()->append(Json{{"document", 0}});
  EXPECT_TRUE(exists(".journal"));
  EXPECT_FALSE(exists(""));
  run.write(to_json(run.result_head("test", run.tokens())));
  EXPECT_FALSE(exists(".journal"));
  EXPECT_TRUE(exists(""));
}

TEST_F(RunTest, GoesOnWithItsJournalOnlyWhenAsked) {
  const Options given = options(), again = options({"--resume"}), other = options({"--resume", "--documents", "2"});
  {
    kvs::Run run(given);
    begin(run, State::kJournal);
    run.journal()->append(Json{{"document", 0}});
  }
  for (const Options* const refused : {&given, &other}) {
    kvs::Run run(*refused);
    EXPECT_EQ(refusal_of([&] { begin(run, State::kJournal); }), ErrorCode::kConflict);
  }
  kvs::Run run(again);
  begin(run, State::kJournal);
  EXPECT_EQ(run.journal()->records().size(), 1U);
}

TEST_F(RunTest, AFinishedRunIsPrintedAndNotRunAgain) {
  const Options given = options(), again = options({"--resume"}), other = options({"--resume", "--documents", "2"});
  {
    kvs::Run run(given);
    begin(run, State::kCheckpoint);
    EXPECT_FALSE(run.saved_state());
    run.write(to_json(run.result_head("test", run.tokens())));
  }
  const auto finished = [&](const Options& options) {
    kvs::Run run(options);
    run.take_outputs({.main = out_});
    run.open_model();
    run.read_texts();
    return run.is_finished();
  };
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(finished(again));
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("o.json: finished before"));
  EXPECT_EQ(refusal_of([&] { finished(given); }), ErrorCode::kConflict);
  EXPECT_EQ(refusal_of([&] { finished(other); }), ErrorCode::kConflict);
}

TEST_F(RunTest, AResultSaysWhatItIsOf) {
  const Options given = options();
  kvs::Run run(given);
  run.open_model();
  run.read_texts();
  const Json head = to_json(run.result_head("test", 32));
  EXPECT_EQ(head.at("format"), "test");
  EXPECT_EQ(head.at("model").at("sha256"), run.model().sha256());
  EXPECT_EQ(head.at("text_sha256").size(), 1U);
  EXPECT_THAT(head.at("command").get<std::string>(), HasSubstr("kvspectrum test --model"));
  run.write(head);  // has no output
  EXPECT_FALSE(exists(""));
}

}  // namespace
}  // namespace kvs::testing
