#include "calibrate/paired_difference.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace kvs {

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

}  // namespace kvs
