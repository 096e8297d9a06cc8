#pragma once

#include <string_view>

#include "analyzers/spectrum.h"
#include "draw/figure.h"

namespace kvs {

/// Log power against bin, one curve per layer (mean over its heads) coloured by depth, one panel per state; DC apart.
/// After FreqKV, figures 1 and 5–7. Bins are averaged over 1/12 octave.
FigureImages render_spectrum_layers(const Spectrum& spectrum, std::string_view model_name, bool with_sinks);

}  // namespace kvs
