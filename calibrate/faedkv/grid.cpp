#include <algorithm>
#include <array>

#include "calibrate/calibration.h"

namespace kvs {
namespace {

std::vector<Json> faedkv_standards() {
  std::vector<Json> all;
  for (const int recent : {50, 25, 0}) all.push_back({{"chunks", 22}, {"sinks", 10}, {"recent", recent}});
  return all;
}

/// Rows against bins: recent tokens have a share of what sinks and one chunk leave, and chunks what is left then, the
/// lowest first, of keys and values alike or but for the lowest one all of keys or all of values. Chunks are fine,
/// eight tokens' worth of the prefix each, so that few bins beside DC may stay. What recent tokens leave has a bin for
/// every chunk.
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

}  // namespace kvs
