#pragma once

#include <string>

#include "analyzers/figures/retention.h"
#include "analyzers/retention.h"
#include "io/json.h"

namespace kvs {

/// {protocol, transform, key_space, prefix, sinks, recent, layers, unit, units, shares, kept, scored, ppl_full,
/// curves}; docs/spectra.md describes it.
Json retention_json(const RetentionPlan& plan, const Retention& retention);

/// The curves as the figure shows them.
RetentionFigure retention_figure(const std::string& heading, const RetentionPlan& plan, const Retention& retention);

/// What the command says on stdout.
std::string retention_summary(const RetentionPlan& plan, const Retention& retention);

}  // namespace kvs
