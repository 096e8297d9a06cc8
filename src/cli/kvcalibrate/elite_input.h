#pragma once

#include <memory>
#include <string>

#include "cli/common/session.h"
#include "io/hdf5/capture_file.h"
#include "states/state_source.h"

namespace kvs {

/// Everything the command works on: a model, a capture, or both.
struct EliteInput {
  ModelConfig config;
  std::string model_sha256;
  std::unique_ptr<ModelSource> model;  // null with a capture and no --model, and once its weights are loaded
  Corpus corpus;
  ModelSession session;
  std::unique_ptr<CaptureReader> reader;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<StateSource> source, held;
  Json identity;

  const ModelSource* files() const noexcept { return session.source ? session.source.get() : model.get(); }
};

/// Opens what the options name and checks that it fits together; loads no weight.
/// @param whiten  --whiten on, or its default: with a capture this needs --model and --text
EliteInput open_elite_input(const Options& options, const RunOptions& run, bool whiten);
/// Makes `input.source`: reads the capture, or loads the model.
/// @param norm  1: states are held in memory between passes, as far as they fit
void start_elite_source(EliteInput& input, const Options& options, const RunOptions& run, int norm);

}  // namespace kvs
