#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

std::vector<Json> faedkv_standards() { return {{{"chunks", 22}, {"sinks", 10}, {"recent", 50}}}; }

/// Rows against bins: recent tokens and sinks are paid for with chunks, the highest first. More chunks cut the spectrum
/// finer, so that fewer bins beside DC may stay.
std::vector<Json> faedkv_settings() {
  return combinations({{"recent", {50, 75, 100, 112, 120, 150, 175, 200, 225, 250, 300, 400, 500, 600, 700}},
                       {"chunks", {22, 88}},
                       {"sinks", {4, 10}},
                       {"key_space", {"k_post", "k_pre"}}});
}

}  // namespace

constinit const BudgetGrid kFaedkvGrid{"faedkv", faedkv_standards, faedkv_settings, "recent"};

}  // namespace kvs
