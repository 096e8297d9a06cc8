#pragma once

#include <string_view>

#include "analyzers/spectrum.h"
#include "draw/figure.h"

namespace kvs {

/// Maps layer × chunk of the share of a layer's energy that lies in each of FAEDKV's chunks of the spectrum, one map
/// per kind of state, on a common logarithmic scale.
FigureImages render_energy_chunks(const Spectrum& spectrum, std::string_view model_name, bool with_sinks);

}  // namespace kvs
