// SPDX-License-Identifier: Apache-2.0
#include "io/output_set.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "io/file.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(OutputSet, TakesAnOlderFileAwayWhenTheOthersAreInPlace) {
  const test::TemporaryDirectory folder;
  std::ofstream(folder.path() / "a.png") << "old";
  for (const bool force : {false, true}) {
    OutputSet outputs;
    outputs.remove(folder.path() / "a.png");
    outputs.remove(folder.path() / "none.png");
    outputs.add(folder.path() / (force ? "b.svg" : "a.svg"), "figure");
    EXPECT_TRUE(fs::exists(folder.path() / "a.png"));
    outputs.commit(force);
    EXPECT_EQ(fs::exists(folder.path() / "a.png"), !force);
  }
}

TEST(OutputSet, PutsAllFilesInPlaceTogether) {
  const test::TemporaryDirectory folder;
  OutputSet outputs;
  outputs.add(folder.path() / "a.svg", "figure");
  outputs.add(folder.path() / "a.json", "result");
  EXPECT_FALSE(fs::exists(folder.path() / "a.svg"));
  outputs.commit(false);
  EXPECT_EQ(read_text_file(folder.path() / "a.svg", 100), "figure");
  EXPECT_EQ(read_text_file(folder.path() / "a.json", 100), "result");
  EXPECT_EQ(entries_of(folder.path()), 2U);
}

TEST(OutputSet, TakesBackWhatIsNewWhereAnotherFails) {
  const test::TemporaryDirectory folder;
  std::ofstream(folder.path() / "a.json") << "earlier";
  {
    OutputSet outputs;
    outputs.add(folder.path() / "a.svg", "figure");
    outputs.add(folder.path() / "a.json", "result");
    EXPECT_THROW(outputs.commit(false), Error);
  }
  EXPECT_EQ(read_text_file(folder.path() / "a.json", 100), "earlier");
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(OutputSet, LeavesNothingWithoutCommit) {
  const test::TemporaryDirectory folder;
  { OutputSet().add(folder.path() / "a.svg", "figure"); }
  EXPECT_EQ(entries_of(folder.path()), 0U);
}

TEST(OutputSet, LeavesALinkWhoseTargetItTakesBack) {
  const test::TemporaryDirectory folder;
  fs::create_symlink("target.svg", folder.path() / "a.svg");
  std::ofstream(folder.path() / "a.json") << "earlier";
  {
    OutputSet outputs;
    outputs.add(folder.path() / "a.svg", "figure");
    outputs.add(folder.path() / "a.json", "result");
    EXPECT_THROW(outputs.commit(false), Error);
  }
  EXPECT_TRUE(fs::is_symlink(folder.path() / "a.svg"));
  EXPECT_FALSE(fs::exists(folder.path() / "target.svg"));
}

}  // namespace
}  // namespace kvs
