// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/thread_team.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "kernels/cpu/linear_algebra.h"

namespace kvs::cpu {
namespace {

using ::testing::ExitedWithCode;

class ThreadTeam : public ::testing::Test {
 protected:
  ThreadTeam() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// Ends with status 0 if a factor that OpenBLAS shares among threads is found within a minute.
[[noreturn]] void factorise() {
  constexpr std::size_t kSize = 512;
  ::alarm(60);
  ::omp_set_num_threads(4);
  std::vector<double> matrix(kSize * kSize);
  for (std::size_t i = 0; i < kSize; ++i) matrix[i * kSize + i] = 4;
  cholesky(TensorView<double, 2>(matrix, {kSize, kSize}));
  std::_Exit(matrix.back() == 2 ? 0 : 1);
}

TEST_F(ThreadTeam, OpenBlasDoesNotWaitForThreadsThatItsRegionsDoNotGet) {
  EXPECT_EXIT((::omp_set_max_active_levels(0), factorise()), ExitedWithCode(0), "");
  EXPECT_EXIT((::omp_set_dynamic(1), factorise()), ExitedWithCode(0), "");
}

TEST_F(ThreadTeam, RegionsHaveTheThreadsThatAreSettled) {
  const auto settled = [](int threads) {
    ::omp_set_dynamic(1);
    ::omp_set_max_active_levels(0);
    ::omp_set_num_threads(threads);
    int found = 0;
    const int all = settle_threads(threads);
#pragma omp parallel
#pragma omp single
    found = ::omp_get_num_threads();
    std::_Exit(all == threads && found == threads ? 0 : 1);
  };
  EXPECT_EXIT(settled(3), ExitedWithCode(0), "");
  EXPECT_EXIT(settled(1), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kvs::cpu
