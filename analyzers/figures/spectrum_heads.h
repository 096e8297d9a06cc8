#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "analyzers/spectrum.h"
#include "draw/figure.h"

namespace kvs {

/// How many pages render_spectrum_heads makes.
std::size_t spectrum_heads_pages(std::size_t layers, std::size_t heads) noexcept;

/// A small panel per (layer, head) with one curve per state, on pages of at most 240 panels (always whole layers).
/// Bins are averaged over 1/4 octave.
std::vector<FigureImages> render_spectrum_heads(const Spectrum& spectrum, std::string_view model_name, bool with_sinks);

}  // namespace kvs
