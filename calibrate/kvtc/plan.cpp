// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "calibrate/kvtc/quantiser.h"

namespace kvs::inline calibrate {
namespace {

/// All costs are multiples of it.
constexpr std::size_t kBitUnit = 32;

/// One choice of the dynamic program: groups that end at a step.
struct Choice {
  KvtcGroup group;
  std::size_t count, steps, units;  // groups, sixteens of components, units of bits
};

std::vector<Choice> choices() {
  std::vector<Choice> all;
  all.reserve((kKvtcSizes.size() - 1) * 3 + 1);
  for (std::size_t size = 1; size < kKvtcSizes.size(); ++size)
    for (const KvtcType type : {KvtcType::kInt2, KvtcType::kInt4, KvtcType::kFp8}) {
      const KvtcGroup group{kKvtcSizes[size], type};
      all.push_back({group, 1, group.size / kKvtcStep, group_bits(group) / kBitUnit});
    }
  const KvtcGroup single{1, KvtcType::kF16};
  all.push_back({single, kKvtcStep, 1, kKvtcStep * group_bits(single) / kBitUnit});
  return all;
}

double squared_error(std::span<const float> wanted, std::span<const float> found) {
  double sum = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const double error = static_cast<double>(found[n]) - static_cast<double>(wanted[n]);
    sum += error * error;
  }
  return sum;
}

}  // namespace

KvtcErrors::KvtcErrors(std::span<const float> samples, std::size_t components)
    : steps_(components / kKvtcStep),
      tails_(steps_ + 1),
      singles_(steps_),
      errors_(steps_ * kKvtcSizes.size() * kTypes) {
  const std::size_t count = components == 0 ? 0 : samples.size() / components;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t step = 0; step < steps_; ++step) {
    std::vector<float> found;
    const auto add = [&](std::size_t sample, std::size_t size, KvtcType type) {
      const auto wanted = samples.subspan(sample * components + step * kKvtcStep, size);
      found.assign(wanted.begin(), wanted.end());
      quantise_group(type, found);
      return squared_error(wanted, found);
    };
    for (std::size_t sample = 0; sample < count; ++sample) {
      singles_[step] += add(sample, kKvtcStep, KvtcType::kF16);
      for (const float value : samples.subspan(sample * components + step * kKvtcStep, kKvtcStep))
        tails_[step] += static_cast<double>(value) * static_cast<double>(value);
      for (std::size_t size = 1; size < kKvtcSizes.size(); ++size)
        for (std::size_t type = 0; type < kTypes && step * kKvtcStep + kKvtcSizes[size] <= components; ++type)
          errors_[(step * kKvtcSizes.size() + size) * kTypes + type] +=
              add(sample, kKvtcSizes[size], static_cast<KvtcType>(type + 1));
    }
  }
  for (std::size_t step = steps_; step-- > 0;) tails_[step] += tails_[step + 1];
}

KvtcErrors::Plan KvtcErrors::plan(std::size_t bits) const {
  const std::vector<Choice> all = choices();
  const std::size_t units = bits / kBitUnit, width = units + 1;
  std::vector<double> best((steps_ + 1) * width, std::numeric_limits<double>::infinity());
  std::vector<std::uint8_t> chosen((steps_ + 1) * width);
  std::fill_n(best.begin(), width, 0.0);
  for (std::size_t step = 1; step <= steps_; ++step)
    for (std::size_t n = 0; n < all.size(); ++n) {
      const Choice& choice = all[n];
      if (choice.steps > step || choice.units > units) continue;
      const std::size_t from = step - choice.steps;
      const bool single = choice.group.size == 1;
      const auto size = static_cast<std::size_t>(std::ranges::find(kKvtcSizes, choice.group.size) - kKvtcSizes.begin());
      const double more = single ? singles_[from] : error(from, size, static_cast<std::size_t>(choice.group.type) - 1);
      for (std::size_t unit = choice.units; unit <= units; ++unit) {
        const double sum = best[from * width + unit - choice.units] + more;
        if (!(sum < best[step * width + unit])) continue;
        best[step * width + unit] = sum;
        chosen[step * width + unit] = static_cast<std::uint8_t>(n);
      }
    }
  std::size_t step = 0, unit = units;
  for (std::size_t other = 1; other <= steps_; ++other)
    if (best[other * width + units] + tails_[other] < best[step * width + units] + tails_[step]) step = other;
  Plan plan{{}, best[step * width + units] + tails_[step]};
  while (step > 0) {
    const Choice& choice = all[chosen[step * width + unit]];
    plan.groups.insert(plan.groups.end(), choice.count, choice.group);
    step -= choice.steps;
    unit -= choice.units;
  }
  std::ranges::reverse(plan.groups);
  return plan;
}

}  // namespace kvs::inline calibrate
