#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

/// L = 128 and S = 16 as the paper has them; a cache holds at least S + 2L tokens at times, so L falls where a budget
/// is smaller.
std::vector<Json> lagkv_standards() {
  std::vector<Json> all;
  for (const int lag : {128, 64, 32, 16, 8}) all.push_back({{"lag", lag}, {"sinks", 16}});
  return all;
}

/// A finer L than the paper's, since L sets how much is recent; what fills the rest are sinks.
std::vector<Json> lagkv_settings() {
  const std::vector<Json> scores{{{"variant", "lag"}, {"value_weight", 1}},
                                 {{"variant", "lag"}, {"value_weight", 4}},
                                 {{"variant", "local"}, {"value_weight", 1}},
                                 {{"variant", "l2"}}};
  std::vector<Json> all;
  for (const Json& score : scores)
    for (Json& settings : combinations({{"lag", {8, 16, 24, 32, 48, 64, 96, 128}}, {"sinks", {4, 16, 32}}})) {
      settings.update(score);
      all.push_back(std::move(settings));
    }
  return all;
}

}  // namespace

constinit const BudgetGrid kLagkvGrid{"lagkv", lagkv_standards, lagkv_settings, "lag"};

}  // namespace kvs
