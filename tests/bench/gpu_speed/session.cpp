// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gpu_speed/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"

namespace kvs::bench {

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_seconds(std::size_t repeats, const std::function<void()>& work) {
  work();
  std::vector<double> times(repeats);
  for (double& time : times) time = seconds(work);
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(repeats / 2));
  return times[repeats / 2];
}

void wait_for(Backend& backend, const void* memory) {
  float probe = 0;
  backend.download(&probe, memory, sizeof probe);
}

void check(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::kInternal, "gpu_speed", what);
}

float random_value(std::size_t n) {
  std::uint64_t z = (n + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93U;
  return static_cast<float>(z >> 57) / 64.0F - 1.0F;
}

std::vector<std::int32_t> Session::document(std::size_t count) const {
  std::vector<std::int32_t> ids(count);
  for (std::size_t n = 0; n < count; ++n) ids[n] = static_cast<std::int32_t>((n * 7919 + 13) % config().vocabulary);
  return ids;
}

double Session::forward_seconds() const {
  const auto ids = document(tokens);
  return median_seconds(5, [&] {
    const auto nll = document_nll(*decoder, ids);
    check(std::ranges::all_of(nll, [](float value) { return std::isfinite(value); }), "the NLL is not finite");
  });
}

}  // namespace kvs::bench
