#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/model_gain.h"
#include "analyzers/spectrum.h"
#include "io/json.h"

namespace kvs {

/// Where a spectrum comes from.
struct SpectrumOrigin {
  std::string model_name;  // for the figures' titles
  Json model;              // model_json()
  Json source;             // object: command, tool_version, text_sha256, what was dropped …; its members are copied
};

/// spectrum.json: all summaries, by layer and by head, of all tokens and without sinks, with and without DC. Lists are
/// indexed by position in `layers`. docs/spectra.md describes it.
/// @param gains  what `coding_gain` says; null: nothing
Json spectrum_json(const Spectrum& spectrum, const SpectrumOrigin& origin, const ModelGains* gains = nullptr);

/// Names of the files that write_spectrum_report() makes, so that they can be checked before any work.
/// @param gains  whether coding gains of layers will be there
std::vector<std::string> spectrum_report_files(const SpectrumAccumulator::Settings& settings, bool gains = false);

/// Writes spectrum.h5, the figures (SVG and, where rsvg-convert makes them, PNG) and, last, spectrum.json into
/// `directory`, which must exist. All figures are drawn before the first file is in place; all files are whole, or none
/// is there.
/// @return a note where a PNG could not be made. @throws Error kConflict if one exists and !force; kEnvironment.
std::string write_spectrum_report(const std::filesystem::path& directory, const Spectrum& spectrum,
                                  const SpectrumOrigin& origin, bool force, const ModelGains* gains = nullptr);

}  // namespace kvs
