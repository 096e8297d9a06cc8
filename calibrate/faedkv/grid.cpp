// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "calibrate/calibration.h"

namespace kvs::inline calibrate {
namespace {

std::vector<Json> faedkv_standards() {
  std::vector<Json> all;
  for (const int recent : {50, 25, 0}) all.push_back({{"chunks", 22}, {"sinks", 10}, {"recent", recent}});
  return all;
}

/// Divides the budget between rows and bins. Recent tokens get a share of what sinks and one chunk leave. Chunks get
/// the rest, the lowest first: equally for keys and values, or, apart from the lowest chunk, all for keys or all for
/// values. A chunk has the size of eight tokens of the prefix, so that a few bins next to DC can be kept. There is a
/// bin for every chunk.
std::vector<Json> faedkv_settings(const BudgetRoom& room) {
  constexpr std::array kRecent{0.5, 0.75, 0.875, 1.0};
  constexpr std::size_t kTokensOfAChunk = 8, kMaxSinks = 10;
  const std::size_t prefix = room.tokens - room.later, sinks = room.sinks(kMaxSinks),
                    chunks = std::max<std::size_t>(1, room.count("chunks", prefix / kTokensOfAChunk)),
                    chunk = (prefix + chunks - 1) / chunks,
                    rows = std::min(room.of_prefix(), prefix - std::min(prefix, 2 * chunks)),
                    others = rows - std::min(rows, sinks + chunk);
  const Json lowest = Json::array({0}), spectra[] = {Json::object(), {{"kept_v", lowest}}, {{"kept", lowest}}};
  std::vector<Json> all;
  for (const Json& rest :
       combinations({shares_of("recent", others, kRecent), {"sinks", {sinks}}, {"chunks", {chunks}}}))
    for (const Json& spectrum : spectra) all.emplace_back(rest).update(spectrum);
  return all;
}

}  // namespace

constinit const Calibration kFaedkvCalibration{
    .method = &kFaedkvMethod, .grid = {.standards = faedkv_standards, .settings = faedkv_settings, .priority = 4}};

}  // namespace kvs::inline calibrate
