#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "run/options.h"

namespace kvs {

/// --budget, --set, --by-layer and --held-windows, of a cache method.
void add_budget_options(OptionTable& table, const std::string& method);
/// Whether there is a --budget, of a command that does something else without one.
/// @param others  its own options, which cannot stand beside it
/// @throws Error kUsage where they do
bool has_budget(const Options& options, std::span<const std::string_view> others);
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
/// Calibrates a method to --budget and writes its config to --out.
void run_budget(std::string_view method, const Options& options);

}  // namespace kvs
