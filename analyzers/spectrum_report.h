// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/model_gain.h"
#include "analyzers/spectrum.h"
#include "results/spectrum.h"

namespace kvs::inline analyzers {

/// Returns `result` with all summaries by layer and by head, for all tokens and without sinks, with and without DC.
/// @param result  describes the source of the states
/// @param gains   null: the result has no `coding_gain`
SpectrumResult spectrum_result(SpectrumResult result, const Spectrum& spectrum, const ModelGains* gains = nullptr);

/// Returns the names of the files that write_spectrum_report() writes, so that they can be checked before any work.
/// @param gains  true if the result will have coding gains
std::vector<std::string> spectrum_report_files(const SpectrumAccumulator::Settings& settings, bool gains = false);

/// Writes spectrum.h5, the figures (SVG, and PNG if rsvg-convert is available) and, last, spectrum.json into
/// `directory`, which must exist. Draws all figures before it puts the first file in place. Writes all files
/// completely, or none.
/// @return a note if a PNG could not be made.  @throws Error kConflict if a file exists and !force; kEnvironment.
std::string write_spectrum_report(const std::filesystem::path& directory, const Spectrum& spectrum,
                                  const SpectrumResult& result, bool force);

}  // namespace kvs::inline analyzers
