// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/full/kv_scales.h"
#include "model/decoder.h"

namespace kvs::inline calibrate {

/// The loss of a rule's scales on the documents.
struct RuleLoss {
  ScaleRule rule = ScaleRule::kMax;
  std::optional<double> kl = {};  // from the full cache's predictions, nats a token; nothing: not measured
  double saturated = 0;           // share of all values

  Json to_json() const;
};

/// Measures the divergence of every rule's scales from the full cache on `documents`: two passes for each rule. Rules
/// whose scales equal those of an earlier rule are left out.
/// @param done  called with the number of passes done and their number at most
std::vector<RuleLoss> rule_losses(Decoder& decoder, const KvScales& scales,
                                  std::span<const std::vector<std::int32_t>> documents,
                                  const std::function<void(std::size_t, std::size_t)>& done);
/// Returns the rule of least divergence; the first of equal ones.
ScaleRule best_rule(std::span<const RuleLoss> losses);
/// Describes the chosen rule and the losses of all. @param layers  number of layers with scales
std::string scales_text(const std::string& types, std::size_t layers, ScaleRule rule, std::span<const RuleLoss> losses);

}  // namespace kvs::inline calibrate
