#include "calibrate/paired_difference.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace kvs {

PairedDifference paired_difference(std::span<const double> differences) {
  constexpr double kConfidence = 0.95;
  const auto count = static_cast<double>(differences.size());
  PairedDifference result;
  for (const double difference : differences) result.mean += difference;
  result.mean /= count;
  if (differences.size() < 2) return result;
  double squares = 0;
  for (const double difference : differences) squares += (difference - result.mean) * (difference - result.mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  const double quantile = boost::math::quantile(boost::math::students_t(count - 1), (1 + kConfidence) / 2);
  result.interval = {std::expm1(result.mean - quantile * error), std::expm1(result.mean + quantile * error)};
  return result;
}

}  // namespace kvs
