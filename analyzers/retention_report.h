#pragma once

#include <string>

#include "analyzers/retention.h"
#include "io/json.h"
#include "results/retention_chart.h"

namespace kvs {

/// {protocol, transform, key_space, prefix, sinks, recent, layers, unit, units, shares, kept, scored, ppl_full,
/// curves}; docs/spectra.md describes it.
Json retention_json(const RetentionPlan& plan, const Retention& retention);

/// The curves as the figure shows them.
std::vector<KeptBandCurve> kept_band_curves(const RetentionPlan& plan, const Retention& retention);

/// What the command says on stdout.
std::string retention_summary(const RetentionPlan& plan, const Retention& retention);

}  // namespace kvs
