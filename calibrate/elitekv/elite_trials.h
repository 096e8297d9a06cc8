#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/elitekv/config.h"
#include "draw/figure.h"
#include "model/config.h"

namespace kvs {

/// What caches of one size lose by the r that they rotate, after EliteKV's comparison of J-LRD, S-LRD and GQA.
struct EliteTrials {
  std::string heading;
  std::vector<EliteTrial> trials;  // ascending in r within J-LRD and within S-LRD; at least one; all finite
  std::optional<GqaTrial> gqa;
};

/// The trials of a config on so many documents of so many tokens.
EliteTrials elite_trials(const EliteConfig& config, const ModelConfig& model, std::size_t documents,
                         std::size_t tokens);

FigureImages render_elite_trials(const EliteTrials& sweep);

}  // namespace kvs
