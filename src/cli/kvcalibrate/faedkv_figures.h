#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/faedkv/ablation_result.h"
#include "eval/filtered_forward.h"
#include "run/outputs.h"

namespace kvs {

/// What the figures of a FAEDKV calibration are drawn from.
struct FaedkvFigures {
  std::string heading;
  std::span<const std::size_t> layers;
  const AblationResult& result;
  std::vector<std::pair<std::size_t, double>> sweep;  // (chunks, perplexity); drawn from two points on
  std::span<const std::int32_t> document;             // whose states are shown before and after filtering
  std::size_t shown_layer = 0;
  std::vector<double> gains;  // of the shown layer, [bin]
};

/// STEM_ablation, STEM_filtering and, with a sweep, STEM_chunks, for the config STEM.json.
RunFigures faedkv_charts(const FaedkvFigures& figures, const AblationSetup& setup, Decoder& decoder, SpectralOps& ops);

}  // namespace kvs
