// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/faedkv/ablation.h"
#include "io/json.h"
#include "results/ablation.h"

namespace kvs::inline calibrate {

/// The plan that the options request for a known window.
struct FaedkvPlan : AblationPlan {
  std::size_t sinks = 0, recent = 0;  // of the config; in-place ablation uses none
};

FaedkvResult faedkv_result(const FaedkvPlan& plan, const AblationTable& table, const KeptLosses& losses);
/// Returns the member `parameters` of the config.
Json faedkv_parameters(const FaedkvPlan& plan, const FaedkvResult& found);

}  // namespace kvs::inline calibrate
