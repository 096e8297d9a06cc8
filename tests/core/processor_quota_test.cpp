// SPDX-License-Identifier: Apache-2.0
#include "core/processor_quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace kvs {
namespace {

namespace fs = std::filesystem;

/// The parts of a machine's /proc and /sys that describe control groups.
class ProcessorQuota : public ::testing::Test {
 protected:
  ProcessorQuota() { fs::create_directories(root_ / "proc/self"); }
  ~ProcessorQuota() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  void mount_unified(const std::string& group) const {
    write("proc/self/mountinfo",
          "30 23 0:26 / /proc rw - proc proc rw\n"
          "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    write("proc/self/cgroup", "0::" + group + "\n");
  }
  std::optional<double> quota() const { return processor_quota(root_); }

  fs::path root_ = fs::temp_directory_path() / ("kvs-quota-" + std::to_string(::getpid()));
};

TEST_F(ProcessorQuota, NoneWithoutControlGroups) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(ProcessorQuota, OfVersion2IsTheLeastOfTheGroupAndThoseAboveIt) {
  mount_unified("/user/session");
  write("sys/fs/cgroup/user/session/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("sys/fs/cgroup/user/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("sys/fs/cgroup/user/session/cpu.max", "50000 200000\n");
  EXPECT_EQ(quota(), 0.25);
  write("sys/fs/cgroup/user/session/cpu.max", "900000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(ProcessorQuota, OfVersion2InAContainer) {
  mount_unified("/");
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(ProcessorQuota, OfVersion1StandsWithTheControllerOfProcessors) {
  write("proc/self/mountinfo",
        "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "32 31 0:29 /docker/a1 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
  write("proc/self/cgroup", "3:cpuset:/other\n2:cpu,cpuacct:/docker/a1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(quota(), 3.0);
  write("proc/self/cgroup", "2:cpu,cpuacct:/somewhere/else\n");  // which this mount does not show
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(ProcessorQuota, OfVersion1HasGroupsBelowTheMountedOne) {
  write("proc/self/mountinfo", "32 31 0:29 /docker/a1 /cg rw - cgroup cgroup rw,cpu\n");
  write("proc/self/cgroup", "2:cpu:/docker/a1/jobs/7\n");
  write("cg/jobs/7/cpu.cfs_quota_us", "25000\n");
  write("cg/jobs/7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.25);
}

}  // namespace
}  // namespace kvs
