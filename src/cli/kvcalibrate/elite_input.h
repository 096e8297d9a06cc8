#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "run/run.h"
#include "states/state_source.h"

namespace kvs {

/// Everything the command works on: a model, a capture, or both.
struct EliteInput {
  ModelConfig config;
  std::string model_sha256;
  std::vector<std::size_t> layers;                   // to search, ascending
  std::vector<std::vector<std::int32_t>> documents;  // of the texts, those that are held out last
  std::unique_ptr<CaptureReader> reader;
  std::unique_ptr<Backend> backend;  // of a capture
  std::unique_ptr<StateSource> source, held;
};

/// Opens what the options name and checks that it fits together; loads no weight.
/// @param whiten  --whiten on, or its default: with a capture this needs --model and --text
EliteInput open_elite_input(Run& run, bool whiten);
/// Makes `input.source`: reads the capture, or loads the model.
/// @param norm  1: states are held in memory between passes, as far as they fit
void start_elite_source(EliteInput& input, Run& run, int norm);

}  // namespace kvs
