// SPDX-License-Identifier: Apache-2.0
#include "io/record.h"

#include <cmath>
#include <string>

namespace kvs::inline io {

double record_real(const JsonCursor& value) {
  constexpr double kMost = 1e100;
  const double found = value.real();
  if (std::abs(found) > kMost) value.fail("a number of magnitude at most 1e100");
  return found;
}

double record_nll(const JsonCursor& value, std::size_t tokens) {
  constexpr double kMost = 1e39;  // more than the largest difference of two f32 logits
  const double found = record_real(value);
  if (std::abs(found) > kMost * static_cast<double>(tokens)) value.fail("at most 1e39 nats per token");
  return found;
}

std::vector<double> record_reals(const JsonCursor& list, std::size_t count) {
  if (list.array_size() != count) list.fail(std::to_string(count) + " numbers");
  std::vector<double> found;
  for (std::size_t n = 0; n < count; ++n) found.push_back(record_real(list.at(n)));
  return found;
}

std::size_t record_size(const JsonCursor& value, std::size_t least, std::size_t most) {
  return static_cast<std::size_t>(value.integer(static_cast<std::int64_t>(least), static_cast<std::int64_t>(most)));
}

std::vector<std::size_t> record_indices(const JsonCursor& list, std::size_t end) {
  std::vector<std::size_t> found;
  for (std::size_t n = 0; n < list.array_size(); ++n) {
    const std::size_t least = found.empty() ? 0 : found.back() + 1;
    if (least >= end) list.fail("ascending indices below " + std::to_string(end));
    found.push_back(record_size(list.at(n), least, end - 1));
  }
  return found;
}

void require_record(const JsonCursor& found, const Json& expected) {
  if (found.value() != expected) found.fail(expected.dump());
}

}  // namespace kvs::inline io
