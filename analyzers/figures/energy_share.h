#pragma once

#include <string_view>

#include "analyzers/spectrum.h"
#include "draw/figure.h"

namespace kvs {

/// Maps of the share of energy that the lowest `percent` per cent of the bins hold, head × layer, for each state with
/// and without DC.
FigureImages render_energy_share(const Spectrum& spectrum, std::string_view model_name, bool with_sinks,
                                 double percent);

}  // namespace kvs
