// SPDX-License-Identifier: Apache-2.0
#include "core/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace kvs {
namespace {

namespace fs = std::filesystem;

/// The parts of a machine's /proc and /sys that describe memory.
class FreeMemory : public ::testing::Test {
 protected:
  FreeMemory() { write("proc/meminfo", "MemTotal:  8000 kB\nMemAvailable:    6000 kB\nSwapFree: 9 kB\n"); }
  ~FreeMemory() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::size_t left() const { return free_memory(root_); }

  fs::path root_ = fs::temp_directory_path() / ("kvs-memory-" + std::to_string(::getpid()));
};

TEST_F(FreeMemory, IsWhatTheSystemHasAvailable) { EXPECT_EQ(left(), 6000U * 1024); }

TEST_F(FreeMemory, IsUnlimitedIfTheSystemSaysNothing) {
  fs::remove_all(root_);
  EXPECT_EQ(left(), SIZE_MAX);
}

TEST_F(FreeMemory, IsAtMostTheLimitOfAGroupLessItsUse) {
  write("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/jobs/7\n");
  write("sys/fs/cgroup/jobs/7/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/7/memory.current", "900000\n");
  EXPECT_EQ(left(), 6000U * 1024);
  write("sys/fs/cgroup/jobs/memory.max", "2000000\n");
  write("sys/fs/cgroup/jobs/memory.current", "1000000\n");
  EXPECT_EQ(left(), 1000000U);
  write("sys/fs/cgroup/jobs/memory.stat", "anon 300000\ninactive_file 200000\nactive_file 100000\n");
  EXPECT_EQ(left(), 1300000U);
  write("sys/fs/cgroup/jobs/memory.current", "5000000\n");
  EXPECT_EQ(left(), 0U);
}

TEST_F(FreeMemory, KnowsTheLimitsOfVersion1) {
  write("proc/self/mountinfo", "32 31 0:29 / /cg rw - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "2:memory:/a\n");
  write("cg/a/memory.limit_in_bytes", "500000\n");
  write("cg/a/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(left(), 100000U);
}

TEST(FreeMemoryHere, IsPositive) { EXPECT_GT(free_memory(), 0U); }

}  // namespace
}  // namespace kvs
