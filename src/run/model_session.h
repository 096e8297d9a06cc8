// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model/decoder.h"
#include "model/model.h"
#include "run/run_options.h"

namespace kvs::inline run {

void add_model_options(OptionTable& table);  // --model --device --dtype --threads --weights-budget
/// Adds --other-weights, for commands with --config or --reuse-sensitivities. open_model() applies it.
void add_other_weights(OptionTable& table);

/// A model that is ready to run, with its files and its backend.
struct ModelSession {
  std::unique_ptr<ModelSource> source;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;

  const ModelConfig& config() const noexcept { return source->config(); }
};

/// Opens and checks the files of --model; loads no weight.
std::unique_ptr<ModelSource> open_model(const Options& options);
/// Creates the backend of --device, --dtype and --threads.
std::unique_ptr<Backend> open_backend(const Options& options);
/// Loads the weights, with a progress bar, and warns if layers will be streamed.
ModelSession load_model(std::unique_ptr<ModelSource> source, const Options& options, const RunOptions& run);

}  // namespace kvs::inline run
