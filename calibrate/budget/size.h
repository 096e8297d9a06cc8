// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace kvs::inline calibrate {

/// Returns the number of documents to hold out: a quarter, but at least two of four or more. An interval needs two.
std::size_t documents_to_hold_out(std::size_t documents) noexcept;
/// The value of --budget: one of the two members is set.
struct Budget {
  double share = 0;  // share of the full 16-bit cache
  double bytes_a_token = 0;
};
/// @throws Error kUsage
Budget parse_budget(const std::string& text);
/// Returns --budget in bytes, for a document of `tokens` tokens whose full cache has `full` bytes. @throws Error kUsage
std::size_t budget_bytes(const std::string& text, double full, std::size_t tokens);

}  // namespace kvs::inline calibrate
