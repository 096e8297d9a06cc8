// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "run/run.h"
#include "states/state_source.h"

namespace kvs::inline cli {

/// The inputs of the command: a model, a capture, or both.
struct EliteInput {
  ModelConfig config;
  std::string model_sha256;
  std::vector<std::size_t> layers;                   // layers to search, ascending
  std::vector<std::vector<std::int32_t>> documents;  // of the texts; held-out documents are last
  std::unique_ptr<CaptureReader> reader;
  std::unique_ptr<Backend> backend;  // set for a capture
  std::unique_ptr<StateSource> source, held;
};

/// Opens the inputs of the options and checks that they belong together. Loads no weights.
/// @param whiten  --whiten or its default; true with a capture needs --model and --text
EliteInput open_elite_input(Run& run, bool whiten);
/// Creates `input.source`: reads the capture, or loads the model.
/// @param norm  1: keeps states in memory between passes, as far as they fit
void start_elite_source(EliteInput& input, Run& run, int norm);

}  // namespace kvs::inline cli
