#pragma once

#include "calibrate/faedkv/ablation.h"
#include "io/json.h"
#include "results/ablation.h"

namespace kvs {

/// What the options say, once the window is known.
struct FaedkvPlan : AblationPlan {
  std::size_t sinks = 0, recent = 0;  // of the config; in-place ablates with none
};

FaedkvResult faedkv_result(const FaedkvPlan& plan, const AblationTable& table, const KeptLosses& losses);
/// The `parameters` of the config.
Json faedkv_parameters(const FaedkvPlan& plan, const FaedkvResult& found);

}  // namespace kvs
