// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/config/config.h"
#include "io/hdf5/capture_file.h"
#include "io/json.h"
#include "model/model.h"
#include "run/run_options.h"
#include "texts/corpus.h"

namespace kvs::inline run {

/// Returns the identity of a run: only a run with the same identity can resume it. Members: every option that changes
/// results (not --threads, --resume, --force, --quiet, --json, --no-lock, nor paths), the processor's instruction set,
/// which determines the order of sums, the libraries that round (kernels/libraries.h), the model, the texts, their
/// tokens, and the configs. A command adds the digests of its other inputs as members whose names end in `_sha256`; its
/// output records the same digests (Provenance::inputs).
Json run_identity(const Options& options, const ModelSource& model, const Corpus& corpus);
/// Returns the identity of a run on a capture. @param corpus  texts that the run reads too
Json run_identity(const Options& options, CaptureReader& capture, const Corpus& corpus = {});
/// Adds the decomposition library. Only runs that need it do so, because loading the library takes address space.
void add_decompositions(Json& identity);
/// Returns the SHA-256 of all documents' ids.
std::string digest_of_tokens(const Corpus& corpus);
/// Returns the SHA-256 of the configs that a command reads (which hold those of their files), as outputs record them:
/// `config_sha256` (a list for several) and `costs_sha256`; with --other-weights also `config_model_sha256`, the models
/// that the configs were made for.
Json digests_of_configs(const Options& options);
/// Returns how an output was made.
Provenance provenance(const Options& options, const RunOptions& run, const Corpus& corpus);

/// Refuses ranks that differ from rank 0 in `identity` (run_identity() and all other properties of the run), device,
/// number type or threads. All ranks must call it before the first document and before anything is written.
/// @throws Error kConflict on rank 0, naming rank, host and the difference
void require_agreement(const RunOptions& run, const Json& identity, const Backend& backend);

}  // namespace kvs::inline run
