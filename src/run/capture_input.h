// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/run.h"
#include "states/capture_source.h"

namespace kvs::inline run {

/// Adds --allow-incomplete and --skip-corrupt, which need --capture.
void add_capture_options(OptionTable& table);

/// The states that a command reads: those of --capture, or of a live model on texts.
struct StateInput {
  std::unique_ptr<CaptureReader> reader;  // nullptr: a live model
  std::unique_ptr<Backend> backend;       // set for a capture
  std::unique_ptr<StateSource> source;    // set by open_source()
  ModelConfig config;                     // of --model, or as far as the capture has it
  std::string model_sha256;
  std::vector<std::size_t> layers;  // that --layers names, ascending

  /// Opens the source: reads the capture, or loads the model, which sees `documents`. Prints a note if the capture has
  /// no checksums, and how many documents --skip-corrupt leaves out.
  void open_source(Run& run, const std::vector<std::vector<std::int32_t>>& documents);
};
/// Opens the files of the options, checks that they belong together, and sets the run's identity. Loads no weights.
/// @param texts  reads the texts with a capture, too
StateInput open_states(Run& run, bool texts);

/// Returns `bos` and `tokenizer_sha256` of the texts of --capture, each only if its manifest or journal has it.
/// @throws Error kInput for a value that no run writes
Json texts_of_capture(const Options& options, const CaptureReader& capture);

}  // namespace kvs::inline run
