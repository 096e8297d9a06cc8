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

/// Rows against bins: recent tokens have a share of what sinks and one chunk leave, and chunks what is left then, the
/// lowest first, of keys and values alike or but for the lowest one all of keys or all of values. Chunks are fine,
/// eight tokens' worth of the prefix each, so that few bins beside DC may stay.
std::vector<Json> faedkv_settings(const BudgetRoom& room) {
  constexpr std::array kRecent{0.5, 0.75, 0.875, 1.0};
  constexpr std::size_t kTokensOfAChunk = 8, kMostSinks = 10, kRowsOfASink = 8;
  const std::size_t chunks = std::max<std::size_t>(1, (room.tokens - room.later) / kTokensOfAChunk),
                    sinks = std::min(kMostSinks, room.rows / kRowsOfASink), rows = room.of_prefix(),
                    others = rows - std::min(rows, sinks + kTokensOfAChunk);
  const Json lowest = Json::array({0}), spectra[] = {Json::object(), {{"kept_v", lowest}}, {{"kept", lowest}}};
  std::vector<Json> all;
  for (const Json& rest :
       combinations({shares_of("recent", others, kRecent), {"sinks", {sinks}}, {"chunks", {chunks}}}))
    for (const Json& spectrum : spectra) all.emplace_back(rest).update(spectrum);
  return all;
}

}  // namespace

constinit const BudgetGrid kFaedkvGrid{"faedkv", faedkv_standards, faedkv_settings};

}  // namespace kvs
