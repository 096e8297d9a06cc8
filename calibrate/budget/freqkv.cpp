#include <array>

#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

std::vector<Json> freqkv_standards() { return {{{"gamma", 0.5}, {"sinks", 4}}}; }

/// Recent slots that stay as they are. γ leaves them room, and so has the others compressed often and a little.
std::vector<Json> freqkv_settings(const BudgetRoom& room) {
  constexpr std::array kRecent{0.5, 0.75, 0.85, 0.9};
  return combinations({shares_of("recent", room.rows, kRecent), {"gamma", {0.95}}, {"sinks", {4, 16}}});
}

}  // namespace

constinit const BudgetGrid kFreqkvGrid{"freqkv", freqkv_standards, freqkv_settings};

}  // namespace kvs
