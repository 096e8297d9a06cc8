#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

std::vector<Json> faedkv_standards() { return {{{"chunks", 22}, {"sinks", 10}, {"recent", 50}}}; }

/// Rows against bins: recent tokens and sinks are paid for with chunks, the highest first. More chunks cut the spectrum
/// finer, so that fewer bins beside DC may stay.
std::vector<Json> faedkv_settings() {
  return combinations({{"chunks", {22, 88}},
                       {"sinks", {4, 10, 32}},
                       {"recent", {16, 50, 100, 150, 200}},
                       {"key_space", {"k_post", "k_pre"}}});
}

}  // namespace

constinit const BudgetGrid kFaedkvGrid{"faedkv", faedkv_standards, faedkv_settings};

}  // namespace kvs
