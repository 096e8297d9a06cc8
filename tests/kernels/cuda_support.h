// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernels/cuda/make_cuda_backend.h"
#include "tests/kernels/support.h"

namespace kvs::test {

/// For SetUp() of a test that this machine cannot run: skips it with a message, or fails it if KVS_REQUIRE_CUDA=1.
inline void leave_out(const std::string& reason) {
  const char* const required = std::getenv("KVS_REQUIRE_CUDA");
  if (required != nullptr && std::string_view(required) == "1") FAIL() << reason << ", KVS_REQUIRE_CUDA=1";
  GTEST_SKIP() << reason;
}

/// A CPU and a CUDA backend of one type, if there is a device.
class BothDevices : public ::testing::Test {
 protected:
  void SetUp() override { start(DType::kF32); }

  void start(DType type) {
    if (!cuda_available()) return leave_out("no CUDA device");
    cpu_ = make_backend("cpu", type);
    cuda_ = make_backend("cuda", type);
  }
  /// Calls `run` on both devices.
  template <class Run>
  auto both(Run run) {
    return std::pair(run(*cpu_), run(*cuda_));
  }

  std::unique_ptr<Backend> cpu_, cuda_;
};

class BothDevicesByType : public BothDevices, public ::testing::WithParamInterface<DType> {
 protected:
  void SetUp() override { start(GetParam()); }
};

/// Checks |got[i] − expected[i]| ≤ tolerance + relative · |expected[i]|; NaN is an error. One message tells how many
/// values exceed this, and shows the worst and the first.
template <class T>
void expect_close(const std::vector<T>& got, const std::vector<T>& expected, double tolerance, double relative = 0) {
  ASSERT_EQ(got.size(), expected.size());
  const auto apart = [&](std::size_t i) {
    return std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
  };
  const auto bound = [&](std::size_t i) { return tolerance + relative * std::abs(static_cast<double>(expected[i])); };
  std::size_t beyond = 0, first = 0, worst = 0;
  double most = -1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (apart(i) <= bound(i)) continue;
    if (beyond++ == 0) first = i;
    const double share = std::isnan(apart(i)) ? INFINITY : apart(i) / bound(i);
    if (share > most) std::tie(most, worst) = std::tuple(share, i);
  }
  EXPECT_EQ(beyond, 0U) << "of " << got.size() << " values; worst: element " << worst << " is " << got[worst]
                        << ", expected " << expected[worst] << ": " << apart(worst) << " apart, at most "
                        << bound(worst) << "; first: element " << first;
}

/// The odd sizes of every parity test: below, across and above the tiles of both devices. Where the kernels run on the
/// processor (tests/emulation) the large ones still cross every tile.
#ifdef KVS_EMULATED
constexpr std::size_t kMany = 150, kMost = 261;
#else
constexpr std::size_t kMany = 1000, kMost = 4097;
#endif
constexpr std::size_t kTokenCounts[] = {1, 7, kMany, kMost};

}  // namespace kvs::test
