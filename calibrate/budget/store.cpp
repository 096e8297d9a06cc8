#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

/// ggml's, which takes keys and values apart.
std::vector<Json> kinds() { return {"f16", "q8_0", "q5_1", "q5_0", "q4_1", "iq4_nl", "q4_0"}; }

std::vector<Json> store_standards() {
  std::vector<Json> all;
  for (const Json& kind : kinds()) all.push_back({{"store_k", kind}, {"store_v", kind}});
  return all;
}

std::vector<Json> store_settings(const BudgetRoom&) {
  return combinations({{"store_k", kinds()}, {"store_v", kinds()}});
}

}  // namespace

constinit const BudgetGrid kStoreGrid{"full", store_standards, store_settings};

}  // namespace kvs
