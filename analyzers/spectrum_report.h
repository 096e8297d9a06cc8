#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/model_gain.h"
#include "analyzers/spectrum.h"
#include "results/spectrum.h"

namespace kvs {

/// All summaries, by layer and by head, of all tokens and without sinks, with and without DC.
/// @param result  says already where the states come from
/// @param gains   null: there is no `coding_gain`
SpectrumResult spectrum_result(SpectrumResult result, const Spectrum& spectrum, const ModelGains* gains = nullptr);

/// Names of the files that write_spectrum_report() makes, so that they can be checked before any work.
/// @param gains  whether coding gains of layers will be there
std::vector<std::string> spectrum_report_files(const SpectrumAccumulator::Settings& settings, bool gains = false);

/// Writes spectrum.h5, the figures (SVG and, where rsvg-convert makes them, PNG) and, last, spectrum.json into
/// `directory`, which must exist. All figures are drawn before the first file is in place; all files are whole, or none
/// is there.
/// @return a note where a PNG could not be made. @throws Error kConflict if one exists and !force; kEnvironment.
std::string write_spectrum_report(const std::filesystem::path& directory, const Spectrum& spectrum,
                                  const SpectrumResult& result, bool force);

}  // namespace kvs
