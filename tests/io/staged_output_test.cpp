// SPDX-License-Identifier: Apache-2.0
#include "io/staged_output.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "io/file.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

constexpr auto kFolderOutput = StagedOutput::Kind::kFolder;

void write_in(const fs::path& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder / name) << text;
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(StagedOutput, AFolderAppearsWholeOrNotAtAll) {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  {
    const StagedOutput dropped(out, kFolderOutput);
    write_in(dropped.path(), "a", "1");
  }
  EXPECT_EQ(entries(directory.path()), 0U);
  StagedOutput staged(out, kFolderOutput);
  write_in(staged.path(), "a", "1");
  EXPECT_FALSE(fs::exists(out));
  staged.commit(false);
  EXPECT_EQ(read_all(out / "a"), "1");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(StagedOutput, AFolderIsReplacedByForceAlone) {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  fs::create_directory(out);
  write_in(out, "old", "1");
  {
    StagedOutput staged(out, kFolderOutput);
    write_in(staged.path(), "new", "2");
    expect_error(ErrorCode::kConflict, "folder that exists", [&] { staged.commit(false); });
  }
  EXPECT_EQ(read_all(out / "old"), "1");
  StagedOutput staged(out, kFolderOutput);
  write_in(staged.path(), "new", "2");
  staged.commit(true);
  EXPECT_FALSE(fs::exists(out / "old"));
  EXPECT_EQ(read_all(out / "new"), "2");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(StagedOutput, LongNamesThatDifferInTheirEndsHaveTemporariesOfTheirOwn) {
  const TemporaryDirectory directory;
  const std::string start(220, 'n');
  StagedOutput first(directory / (start + "a"), kFolderOutput);
  const StagedOutput second(directory / (start + "b"), kFolderOutput);
  write_in(first.path(), "of", "a");
  first.commit(false);
  EXPECT_EQ(read_all(directory / (start + "a") / "of"), "a");
  EXPECT_TRUE(fs::exists(second.path()));
}

TEST(StagedOutput, ALockRemovesTheFolderOfADeadProcess) {
  const TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    const StagedOutput left(directory / "out", kFolderOutput);
    write_in(left.path(), "a", "1");
    ::_exit(0);  // no destructor runs
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(entries(directory.path()), 1U);
  const OutputLock lock(directory / "out");
  EXPECT_EQ(entries(directory.path()), 1U);
  EXPECT_TRUE(fs::exists(directory / "out.lock"));
}

TEST(CheckOutputFolder, SparesWhatNoCommandWrote) {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  EXPECT_NO_THROW(check_output_folder(out, false, "record"));
  fs::create_directory(out);
  expect_error(ErrorCode::kConflict, "exists", [&] { check_output_folder(out, false, "record"); });
  expect_error(ErrorCode::kConflict, "without record", [&] { check_output_folder(out, true, "record"); });
  write_in(out, "record", R"({"files": ["a", "sub/b"]})");
  fs::create_directory(out / "sub");
  write_in(out, "a", "1");
  write_in(out / "sub", "b", "1");
  EXPECT_NO_THROW(check_output_folder(out, true, "record"));
  write_in(out / "sub", "notes.txt", "mine");
  expect_error(ErrorCode::kConflict, "found sub/notes.txt, which record does not list",
               [&] { check_output_folder(out, true, "record"); });
  for (const char* name : {"c", "d", "e"}) write_in(out, name, "1");
  expect_error(ErrorCode::kConflict, "found c, d, e and 1 more", [&] { check_output_folder(out, true, "record"); });
  EXPECT_EQ(read_all(out / "sub" / "notes.txt"), "mine");
  write_in(out, "record", "{}");  // from a version that listed nothing
  expect_error(ErrorCode::kConflict, "found a, c, d and 3 more", [&] { check_output_folder(out, true, "record"); });
  expect_error(ErrorCode::kEnvironment, "no folder",
               [&] { check_output_folder(directory.write("file", "1"), true, "record"); });
}

}  // namespace
}  // namespace kvs::test
