#include "calibrate/full/fp8_scales.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr double kShare = 0.01;     // weight of a new document in the average
constexpr double kMaxOfE4m3 = 448;  // S.1111.110

}  // namespace

void Fp8Scales::add(std::span<const float> states, std::size_t heads, std::size_t head_dim) {
  const std::size_t groups = low_.size(), each = states.size() / groups;
  for (std::size_t group = 0; group < groups; ++group) {
    const auto values = states.subspan(group * each, each);
    const auto wrong = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (wrong != values.end()) {
      const auto row = (group * each + static_cast<std::size_t>(wrong - values.begin())) / head_dim;
      const std::size_t tokens = states.size() / heads / head_dim;
      throw Error(ErrorCode::kData, "states",
                  "found NaN or infinity in head " + std::to_string(row / tokens) + ", token " +
                      std::to_string(row % tokens) + ", expected finite values");
    }
    const auto [least, most] = std::ranges::minmax(values);
    largest_ = std::max({largest_, std::abs(double{least}), std::abs(double{most})});
    const auto join = [&](double& held, double found, double (*further)(double, double)) {
      if (empty_)
        held = found;
      else
        held = rule_ == ExtremeRule::kEma ? held + kShare * (found - held) : further(held, found);
    };
    join(low_[group], least, [](double a, double b) { return std::min(a, b); });
    join(high_[group], most, [](double a, double b) { return std::max(a, b); });
  }
  empty_ = false;
}

std::vector<double> Fp8Scales::scales() const {
  std::vector<double> scales;
  for (std::size_t group = 0; group < low_.size(); ++group)
    scales.push_back(std::max(std::max(std::abs(low_[group]), std::abs(high_[group])) / kMaxOfE4m3,
                              double{std::numeric_limits<float>::epsilon()}));
  return scales;
}

}  // namespace kvs::inline calibrate
