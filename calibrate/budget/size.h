#pragma once

#include <cstddef>
#include <string>

namespace kvs {

/// Of so many documents: a quarter, and of four or more at least two, which have an interval.
std::size_t documents_to_hold_out(std::size_t documents) noexcept;
/// --budget as it is written: one of the two.
struct Budget {
  double share = 0;  // of the full 16-bit cache
  double bytes_a_token = 0;
};
/// @throws Error kUsage
Budget parse_budget(const std::string& text);
/// --budget as bytes of a document of `tokens` tokens whose full cache takes `full`. @throws Error kUsage
std::size_t budget_bytes(const std::string& text, double full, std::size_t tokens);

}  // namespace kvs
