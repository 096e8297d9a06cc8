// SPDX-License-Identifier: Apache-2.0
#include "ranks/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace kvs {
namespace {

constexpr char kVisible[] = "CUDA_VISIBLE_DEVICES";

class LaunchTest : public ::testing::Test {
 protected:
  void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  void TearDown() override {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_SIZE", "PMI_RANK", "SLURM_STEP_NUM_TASKS",
                             "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID", kVisible})
      ::unsetenv(name);
  }
  std::string visible_to(std::size_t local_rank) {
    take_own_gpu({.size = 8, .rank = 4 + local_rank, .local_size = 4, .local_rank = local_rank});
    return std::getenv(kVisible);
  }
};

TEST_F(LaunchTest, IsOneProcessWithoutALauncherOrWithOneOfOne) {
  EXPECT_TRUE(launch_of_environment().alone());
  set("OMPI_COMM_WORLD_SIZE", "1");
  set("OMPI_COMM_WORLD_RANK", "0");
  EXPECT_TRUE(launch_of_environment().alone());
}

TEST_F(LaunchTest, IsOfTheInnermostLauncher) {
  set("SLURM_STEP_NUM_TASKS", "4");  // mpirun's daemon on this host is a task of srun's
  set("SLURM_PROCID", "3");
  set("OMPI_COMM_WORLD_SIZE", "1");
  set("OMPI_COMM_WORLD_RANK", "0");
  EXPECT_TRUE(launch_of_environment().alone());
}

TEST_F(LaunchTest, SlurmListsItsHosts) {
  set("SLURM_STEP_NUM_TASKS", "18");
  set("SLURM_PROCID", "8");
  set("SLURM_STEP_TASKS_PER_NODE", "8(x2),2");
  set("SLURM_LOCALID", "0");
  const Launch launch = launch_of_environment();
  EXPECT_EQ(launch.size, 18U);
  EXPECT_EQ(launch.local_size, 8U) << "the same for all ranks of a host";
}

TEST_F(LaunchTest, IsWhatTheLauncherSays) {
  set("OMPI_COMM_WORLD_SIZE", "6");
  set("OMPI_COMM_WORLD_RANK", "5");
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "3");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "2");
  const Launch launch = launch_of_environment();
  EXPECT_EQ(launch.size, 6U);
  EXPECT_EQ(launch.rank, 5U);
  EXPECT_EQ(launch.local_size, 3U);
  EXPECT_EQ(launch.local_rank, 2U);
  EXPECT_FALSE(launch.is_root());
}

TEST_F(LaunchTest, IsOneProcessWhereNumbersMakeNoSense) {
  set("PMI_SIZE", "2x");
  set("PMI_RANK", "0");
  EXPECT_TRUE(launch_of_environment().alone());
  set("PMI_SIZE", "2");
  set("PMI_RANK", "2");
  EXPECT_TRUE(launch_of_environment().alone());
}

TEST_F(LaunchTest, ARankTakesTheGpuOfItsPlaceOnItsMachine) {
  EXPECT_EQ(visible_to(2), "2");
  set(kVisible, "4,GPU-5,6");
  EXPECT_EQ(visible_to(1), "GPU-5");
  set(kVisible, "4,5");
  EXPECT_EQ(visible_to(2), "") << "there is none for it";
  set(kVisible, "7");
  EXPECT_EQ(visible_to(3), "7") << "the launcher has chosen";
}

TEST(OwnProcessors, AreThoseOfTheMachineAndItsQuota) {
  const Launch alone, one_of_four{.size = 4, .local_size = 4};
  EXPECT_EQ(own_processors(alone, {.online = 8, .usable = 8, .quota = {}}), 8);
  EXPECT_EQ(own_processors(alone, {.online = 8, .usable = 3, .quota = {}}), 3);
  EXPECT_EQ(own_processors(alone, {.online = 8, .usable = 8, .quota = 0.5}), 1);
  EXPECT_EQ(own_processors(alone, {.online = 8, .usable = 8, .quota = 2.5}), 3);
  EXPECT_EQ(own_processors(alone, {.online = 8, .usable = 2, .quota = 4.0}), 2);
  EXPECT_EQ(own_processors(one_of_four, {.online = 8, .usable = 8, .quota = {}}), 2);
  EXPECT_EQ(own_processors(one_of_four, {.online = 64, .usable = 64, .quota = 8.0}), 2);
  EXPECT_EQ(own_processors(one_of_four, {.online = 2, .usable = 2, .quota = {}}), 1);
}

}  // namespace
}  // namespace kvs
