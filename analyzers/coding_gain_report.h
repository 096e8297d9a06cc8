#pragma once

#include <string>

#include "analyzers/model_gain.h"
#include "io/json.h"

namespace kvs {

/// `coding_gain` of spectrum.json: every step by layer and head, its optimism, and the families of methods with their
/// verdicts. docs/spectra.md describes it.
Json coding_gain_json(const ModelGains& gains);

/// The means over layers as a table, then a sentence for each family of methods.
std::string coding_gain_text(const ModelGains& gains);

}  // namespace kvs
