// SPDX-License-Identifier: Apache-2.0
#include "io/journal.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/digest.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

using testing::ElementsAre;

class JournalFile : public testing::Test {
 protected:
  /// A journal of three records, {"doc": 0} to {"doc": 2}, as bytes.
  std::string make_three() {
    Journal journal = Journal::create(path_, identity_);
    for (int doc = 0; doc < 3; ++doc) journal.append({{"doc", doc}});
    return read_all(path_);
  }

  TemporaryDirectory directory_;
  fs::path path_ = directory_ / "out.journal";
  Json identity_{{"schema", 1}, {"model", "abc"}, {"options", {{"window", 1024}, {"taper", 0.1}}}};
};

TEST_F(JournalFile, IsJsonLinesThatCarryTheCrcOfTheRecordsSoFar) {
  Journal::create(path_, {{"a", 1}}).append({{"b", 2}});
  const std::string records = R"({"a":1}{"b":2})";
  char first[9], second[9];
  std::snprintf(first, sizeof first, "%08x", crc32c_by_table(std::as_bytes(std::span(records).first(7))));
  std::snprintf(second, sizeof second, "%08x", crc32c_by_table(std::as_bytes(std::span(records))));
  EXPECT_EQ(read_all(path_), std::string(R"([{"a":1},")") + first + "\"]\n" + R"([{"b":2},")" + second + "\"]\n");
  EXPECT_THAT(directory_.names(), ElementsAre("out.journal"));
}

TEST_F(JournalFile, ResumesWithItsRecordsAndGoesOn) {
  make_three();
  {
    Journal journal = Journal::resume(path_, identity_);
    EXPECT_THAT(journal.records(), ElementsAre(Json{{"doc", 0}}, Json{{"doc", 1}}, Json{{"doc", 2}}));
    Journal moved(std::move(journal));
    moved.append({{"doc", 3}});
    EXPECT_EQ(moved.records().size(), 3U) << "memory does not grow with what is appended";
  }
  const Journal::Content content = Journal::read(path_);
  EXPECT_EQ(content.identity, identity_);
  EXPECT_EQ(content.records.back(), (Json{{"doc", 3}}));
}

TEST_F(JournalFile, DropsALastLineTornAnywhereAndWritesOverIt) {
  const std::string whole = make_three();
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last; size < whole.size(); ++size) {
    directory_.write("out.journal", whole.substr(0, size));
    EXPECT_EQ(Journal::read(path_).records.size(), 2U);
    EXPECT_EQ(read_all(path_).size(), size) << "read() changed the file";
    Journal::resume(path_, identity_).append({{"doc", 2}});
    ASSERT_EQ(read_all(path_), whole) << "cut at byte " << size;
  }
}

TEST_F(JournalFile, DropsALastLineOfZerosAsAPowerLossLeavesIt) {
  const std::string whole = make_three();
  directory_.write("out.journal", whole + std::string(40, '\0'));
  EXPECT_EQ(Journal::resume(path_, identity_).records().size(), 3U);
  EXPECT_EQ(read_all(path_), whole);
}

TEST_F(JournalFile, RefusesEveryFlippedBitInALineBeforeTheLast) {
  const std::string whole = make_three();
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  // Without its newline the line before the last is part of a torn last line, whose records are made again.
  for (std::size_t at = 0; at < last - 1; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      directory_.write("out.journal", damaged);
      expect_error(ErrorCode::kInput, "out.journal: line ", [&] { Journal::read(path_); });
      ASSERT_FALSE(HasFailure()) << "byte " << at << " bit " << bit;
    }
}

TEST_F(JournalFile, NamesTheDamagedLine) {
  std::string text = make_three();
  text[text.find("{\"doc\":0}") + 7] = '9';
  directory_.write("out.journal", text);
  expect_error(ErrorCode::kInput, "line 2: damaged", [&] { Journal::resume(path_, identity_); });
  EXPECT_EQ(read_all(path_), text);
}

TEST_F(JournalFile, RefusesLinesThatAreLostRepeatedOrInAnotherOrder) {
  const std::string whole = make_three();
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < whole.size(); from = whole.find('\n', from) + 1)
    lines.push_back(whole.substr(from, whole.find('\n', from) + 1 - from));
  directory_.write("out.journal", lines[0] + lines[2] + lines[3]);
  expect_error(ErrorCode::kInput, "line 2: damaged", [&] { Journal::read(path_); });
  directory_.write("out.journal", lines[0] + lines[1] + lines[1] + lines[2]);
  expect_error(ErrorCode::kInput, "line 3: damaged", [&] { Journal::read(path_); });
  directory_.write("out.journal", lines[0] + lines[2] + lines[1] + lines[3]);
  expect_error(ErrorCode::kInput, "line 2: damaged", [&] { Journal::read(path_); });
  directory_.write("out.journal", lines[0] + lines[1] + lines[3]);  // like a torn line: its work is done again
  EXPECT_EQ(Journal::read(path_).records.size(), 1U);
}

TEST_F(JournalFile, RefusesAMissingAnEmptyAndAForeignFile) {
  expect_error(ErrorCode::kInput, "No such file", [&] { Journal::resume(path_, identity_); });
  directory_.write("out.journal", "");
  expect_error(ErrorCode::kInput, "empty", [&] { Journal::read(path_); });
  directory_.write("out.journal", "my notes, without a newline");
  expect_error(ErrorCode::kInput, "line 1: damaged", [&] { Journal::resume(path_, identity_); });
  EXPECT_EQ(read_all(path_), "my notes, without a newline");
}

TEST_F(JournalFile, ListsEveryFieldThatDiffers) {  // catalogue item 124
  make_three();
  const Json now{{"options", {{"taper", 0.1}, {"window", 512}, {"sinks", 4}}}, {"schema", 1}};
  expect_error(ErrorCode::kConflict,
               "made for another run: model: stored \"abc\", now nothing; "
               "options.window: stored 1024, now 512; options.sinks: stored nothing, now 4",
               [&] { Journal::resume(path_, now); });
}

TEST_F(JournalFile, IgnoresTheOrderOfMembers) {
  make_three();
  const Json now{{"options", {{"taper", 0.1}, {"window", 1024}}}, {"model", "abc"}, {"schema", 1}};
  EXPECT_NO_THROW(Journal::resume(path_, now));
}

TEST_F(JournalFile, IsNotCreatedOverAnother) {
  const std::string whole = make_three();
  expect_error(ErrorCode::kConflict, "exists", [&] { Journal::create(path_, identity_); });
  EXPECT_EQ(read_all(path_), whole);
}

TEST_F(JournalFile, IsGoneAfterRemoveAndCannotBeAppendedTo) {
  Journal journal = Journal::create(path_, identity_);
  journal.remove();
  EXPECT_THAT(directory_.names(), ElementsAre());
  expect_error(ErrorCode::kInternal, "append", [&] { journal.append({{"doc", 0}}); });
}

TEST_F(JournalFile, StopsForGoodAfterAFailedWriteAndLosesNothingBefore) {  // catalogue items 115 and 120
  const std::string whole = make_three();
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{whole.size() + 5, whole.size() + 5};  // space for 5 bytes of the next line
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int codes[2] = {0, 0};
    Journal journal = Journal::resume(path_, identity_);
    for (int& code : codes) try {
        journal.append({{"doc", 3}});
      } catch (const Error& error) {
        code = static_cast<int>(error.code());
      }
    ::_exit(codes[0] == 6 && codes[1] == 70 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fs::file_size(path_), whole.size() + 5);
  EXPECT_EQ(Journal::resume(path_, identity_).records().size(), 3U);
}

}  // namespace
}  // namespace kvs::test
