// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/spectrum.h"
#include "draw/chart.h"
#include "results/states.h"

namespace kvs::inline analyzers {

/// Several bins as one, because a logarithmic axis would draw them at the same place.
struct Band {
  double bin;    // geometric middle
  double power;  // mean
};
/// Returns means of bins 1 … over bands of 1/`per_octave` octave, without DC and without empty bands.
std::vector<Band> log_bands(std::span<const double> power, std::size_t per_octave);

/// Content of a spectrum's figure: all tokens with the sinks, otherwise the tokens after them.
struct SpectrumView {
  const Spectrum& spectrum;
  std::string_view model_name;
  bool with_sinks = true;
};

/// "SmolLM2-135M-Instruct, all 1024 tokens, 8 documents", for headings.
std::string subject_of(const SpectrumView& view);

/// Log power against bin by layer (results/spectrum_charts.h); bins are averaged over 1/12 octave.
draw::Chart spectrum_layers_chart(const SpectrumView& view);
/// Spectra of keys before and after RoPE in up to six layers spread over the depth; bands show the range of a layer's
/// heads. Needs k_pre and k_post in the spectrum.
draw::Chart spectrum_rope_chart(const SpectrumView& view);
/// Returns the number of charts of spectrum_heads_charts().
std::size_t spectrum_heads_pages(std::size_t layers, std::size_t heads) noexcept;
/// A small panel for each layer and head with one curve per state, on pages of at most 240 panels (always whole
/// layers). Bins are averaged over 1/4 octave.
std::vector<draw::Chart> spectrum_heads_charts(const SpectrumView& view);
}  // namespace kvs::inline analyzers
