#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analyzers/spectrum.h"
#include "draw/figure.h"

namespace kvs {

/// Bins that a logarithmic axis would draw on top of each other, as one.
struct Band {
  double bin;    // geometric middle
  double power;  // mean
};

/// Means of bins 1 … over bands of 1/`per_octave` octave; DC is left out. Empty bands are, too.
std::vector<Band> log_bands(std::span<const double> power, std::size_t per_octave);

/// Where DC is drawn on a logarithmic axis that starts with bin 1.
inline constexpr double kDcPosition = 0.55;

/// A curve as one block: a row (kDcPosition, power of DC, extra…), then a blank line (gnuplot breaks the line there),
/// then rows (bin, power, extra…).
void add_curve(FigureData& data, std::span<const double> power, std::size_t per_octave, double extra);

/// Exponents of the decades around powers, at least one decade.
struct Decades {
  int low = 0, high = 1;
  bool operator==(const Decades&) const = default;
};
/// Around what add_curve draws of all layers and heads of the tables that share a scale with `state`: keys before and
/// after RoPE one, values another.
Decades decades_of(const Spectrum& spectrum, StateKind state, bool with_sinks);
/// Around both.
Decades around(const Decades& a, const Decades& b) noexcept;

/// "SmolLM2-135M-Instruct · T = 1024 · 8 documents", for titles.
std::string spectrum_subject(const Spectrum& spectrum, std::string_view model_name, bool with_sinks);

/// What bin k stands for, for axis titles: "DCT bin k (k / 2048 cycles per token)".
std::string bin_axis(const Spectrum& spectrum, bool with_sinks);

/// "k before RoPE", "k after RoPE", "v".
std::string_view title_of(StateKind state) noexcept;

}  // namespace kvs
