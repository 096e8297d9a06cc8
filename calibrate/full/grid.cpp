// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "calibrate/calibration.h"
#include "calibrate/common/engine_pairs.h"

namespace kvs::inline calibrate {
namespace {

/// Types of ggml, which allows different types for keys and values.
std::vector<Json> kinds() { return {"f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}; }

/// The pairs that every build of llama.cpp runs on a GPU.
std::vector<Json> store_standards() {
  constexpr std::array<std::pair<const char*, const char*>, 4> kPairs{
      {{"f16", "f16"}, {"q8_0", "q8_0"}, {"q8_0", "q4_0"}, {"q4_0", "q4_0"}}};
  std::vector<Json> all;
  all.reserve(kPairs.size());
  for (const auto& [k, v] : kPairs) all.push_back({{"type_k", k}, {"type_v", v}});
  return all;
}

std::size_t store_demand(const Json& settings) {
  const auto types = type_pair(settings);
  return static_cast<std::size_t>(types ? cuda_pair(types->k, types->v) : CudaPair::kNone);
}

std::vector<Json> type_settings(const BudgetRoom&) { return combinations({{"type_k", kinds()}, {"type_v", kinds()}}); }

}  // namespace

constinit const Calibration kFullCalibration{
    .method = &kFullMethod, .grid = {.standards = store_standards, .settings = type_settings, .demand = store_demand}};

}  // namespace kvs::inline calibrate
