// SPDX-License-Identifier: Apache-2.0
#include "eval/paired_difference.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>
#include <vector>

namespace kvs::inline eval {

PairedMean paired_mean(std::span<const double> differences) {
  const auto count = static_cast<double>(differences.size());
  PairedMean result;
  for (const double difference : differences) result.mean += difference;
  result.mean /= count;
  if (differences.size() < 2) return result;
  double squares = 0;
  for (const double difference : differences) squares += (difference - result.mean) * (difference - result.mean);
  result.error = std::sqrt(squares / (count - 1) / count);
  return result;
}

double half_width(std::size_t documents, double confidence) {
  return boost::math::quantile(boost::math::students_t(static_cast<double>(documents - 1)), (1 + confidence) / 2);
}

double growth(double difference) { return std::min(std::expm1(difference), std::numeric_limits<double>::max()); }

PairedDifference paired_difference(std::span<const double> differences) {
  constexpr double kConfidence = 0.95;
  const auto [mean, error] = paired_mean(differences);
  PairedDifference result{mean, std::nullopt};
  if (differences.size() < 2) return result;
  const double width = half_width(differences.size(), kConfidence) * error;
  result.interval = {growth(mean - width), growth(mean + width)};
  return result;
}

PairedDifference paired_difference(std::span<const double> nll, std::span<const double> other) {
  std::vector<double> differences(nll.begin(), nll.end());
  std::ranges::transform(differences, other, differences.begin(), std::minus{});
  return paired_difference(differences);
}

Json difference_json(const PairedDifference& difference) {
  const auto& [mean, interval] = difference;
  return {{"difference", mean}, {"interval", interval ? Json{interval->first, interval->second} : Json()}};
}

std::string difference_text(const PairedDifference& difference) {
  constexpr long double kPercent = 100;  // times a value that may be the largest double
  std::ostringstream text;
  text.precision(3);
  text << kPercent * growth(difference.mean) << " % ";
  if (const auto& interval = difference.interval)
    text << "(95 %: " << kPercent * interval->first << " to " << kPercent * interval->second << ')';
  else
    text << "(one document, no interval)";
  return text.str();
}

}  // namespace kvs::inline eval
