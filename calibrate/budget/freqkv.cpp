#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

std::vector<Json> freqkv_standards() { return {{{"gamma", 0.5}, {"sinks", 4}}}; }

/// γ from what nearly slides to what compresses at every few tokens; the high band beside the low one.
std::vector<Json> freqkv_settings() {
  return combinations({{"gamma", {0.125, 0.25, 0.5, 0.75}},
                       {"sinks", {4, 16, 32}},
                       {"band", {"low", "high"}},
                       {"rescale", {"on", "off"}}});
}

}  // namespace

constinit const BudgetGrid kFreqkvGrid{"freqkv", freqkv_standards, freqkv_settings, "gamma"};

}  // namespace kvs
