#include <algorithm>
#include <array>

#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

std::vector<Json> faedkv_standards() {
  std::vector<Json> all;
  for (const int recent : {50, 25, 0}) all.push_back({{"chunks", 22}, {"sinks", 10}, {"recent", recent}});
  return all;
}

/// Rows against bins: what recent tokens and sinks leave are chunks, the lowest first, of keys and values alike or but
/// for the lowest one all of keys or all of values. Those are fine, eight tokens' worth of the prefix each, so that few
/// bins beside DC may stay.
std::vector<Json> faedkv_settings(const BudgetRoom& room) {
  constexpr std::array kRecent{0.5, 0.75, 0.875, 0.9375};
  constexpr std::size_t kTokensOfAChunk = 8, kMostSinks = 10, kRowsOfASink = 8;
  const std::size_t chunks = std::max<std::size_t>(1, (room.tokens - room.later) / kTokensOfAChunk);
  const Json lowest = Json::array({0}), spectra[] = {Json::object(), {{"kept_v", lowest}}, {{"kept", lowest}}};
  std::vector<Json> all;
  for (const Json& rows : combinations({shares_of("recent", room.of_prefix(), kRecent),
                                        {"sinks", {std::min(kMostSinks, room.rows / kRowsOfASink)}},
                                        {"chunks", {chunks}}}))
    for (const Json& spectrum : spectra) all.emplace_back(rows).update(spectrum);
  return all;
}

}  // namespace

constinit const BudgetGrid kFaedkvGrid{"faedkv", faedkv_standards, faedkv_settings};

}  // namespace kvs
