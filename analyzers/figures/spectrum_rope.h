#pragma once

#include <string_view>

#include "analyzers/spectrum.h"
#include "draw/figure.h"

namespace kvs {

/// Spectra of keys before and after RoPE in up to six layers spread over the depth; bands span the heads of a layer.
/// Needs k_pre and k_post in `spectrum`.
FigureImages render_spectrum_rope(const Spectrum& spectrum, std::string_view model_name, bool with_sinks);

}  // namespace kvs
