// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/size.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

[[noreturn]] void refuse_budget(const std::string& found) {
  throw Error(ErrorCode::kUsage, "--budget",
              "found '" + found +
                  "', expected a share of the full 16-bit cache, such as 12.5% or 0.125, or bytes of a "
                  "token, such as '4096B a token'");
}

}  // namespace

std::size_t documents_to_hold_out(std::size_t documents) noexcept {
  return std::max<std::size_t>(documents < 4 ? 1 : 2, documents / 4);
}

Budget parse_budget(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, end);
  if (error != std::errc() || !(value > 0)) refuse_budget(text);
  if (unit == "B" || unit == "B a token") return {.bytes_a_token = value};
  if (unit == "%") value /= 100;
  if ((!unit.empty() && unit != "%") || value > 1) refuse_budget(text);
  return {.share = value};
}

std::size_t budget_bytes(const std::string& text, double full, std::size_t tokens) {
  const Budget budget = parse_budget(text);
  const double bytes = budget.share > 0 ? full * budget.share : budget.bytes_a_token * static_cast<double>(tokens);
  if (bytes > full) refuse_budget(text);
  return static_cast<std::size_t>(bytes);
}

}  // namespace kvs::inline calibrate
