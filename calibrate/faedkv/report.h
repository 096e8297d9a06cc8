#pragma once

#include <string>
#include <vector>

#include "calibrate/faedkv/ablation.h"
#include "io/json.h"

namespace kvs {

/// What the options say, once the window is known.
struct FaedkvPlan : AblationPlan {
  std::size_t sinks = 0, recent = 0;  // of the config; in-place ablates with none
};

/// What a FAEDKV calibration found.
struct FaedkvFindings {
  AblationResult result;
  std::vector<std::vector<std::size_t>> kept;  // [layer]
  std::vector<ChunkRace> races;                // [layer]; empty without a race
  std::size_t passes = 0, full_passes = 0;     // made, and those of a full table
  double nll_kept = 0, nll_kept_error = 0;     // mean, with the chosen chunks alone, and its standard error
};

/// The config's `parameters` and `calibration.ablation`.
Json parameters_json(const FaedkvPlan& plan, const FaedkvFindings& findings);
Json ablation_json(const AblationPlan& plan, const FaedkvFindings& findings);
/// What the command says on stdout.
std::string summary(const AblationPlan& plan, const FaedkvFindings& findings);

}  // namespace kvs
