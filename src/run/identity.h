#pragma once

#include <string>

#include "calibrate/config/config.h"
#include "io/hdf5/capture_file.h"
#include "io/json.h"
#include "model/model.h"
#include "run/run_options.h"
#include "texts/corpus.h"

namespace kvs {

/// The identity of a run: a run can be resumed only by a run of the same identity. Members: every option that changes
/// results (not --threads, --resume, --force, --quiet, --json, --no-lock, and not where files lie), the processor's
/// instruction set, which sets the order of sums, the libraries that round (kernels/libraries.h), the model, the texts,
/// their tokens, and the configs. A command adds the digests of its other inputs as members whose names end in
/// `_sha256`; its output records the same digests (Provenance::inputs).
Json run_identity(const Options& options, const ModelSource& model, const Corpus& corpus);
/// The identity of a run on a capture. @param corpus  that it reads as well
Json run_identity(const Options& options, CaptureReader& capture, const Corpus& corpus = {});
/// Adds the library of decompositions, to the identity of a run that needs them: loading it takes address space.
void add_decompositions(Json& identity);
/// SHA-256 of all documents' ids.
std::string digest_of_tokens(const Corpus& corpus);
/// SHA-256 of the configs that a command reads (which hold those of their files), as outputs record them:
/// `config_sha256`, of several a list, and `costs_sha256`; with --other-weights `config_model_sha256`, too, the models
/// that they were made for.
Json digests_of_configs(const Options& options);
/// How an output was made.
Provenance provenance(const Options& options, const RunOptions& run, const Corpus& corpus);

/// Refuses ranks that differ from rank 0 in `identity` (run_identity() and what else makes the run), device, number
/// type or threads. To be called by all of them before the first document and before anything is written.
/// @throws Error kConflict on rank 0, naming rank, host and what differs
void require_agreement(const RunOptions& run, const Json& identity, const Backend& backend);

}  // namespace kvs
