// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/dtype.h"
#include "io/hdf5/capture_file.h"
#include "model/work.h"
#include "run/model_session.h"

namespace kvs::inline run {

/// The time, memory and disk space that a run needs.
struct Estimate {
  double flops = 0, memory_bytes = 0, disk_bytes = 0;  // disk: written
  double read_bytes = 0;                               // of captures
  double coded_values = 0;                             // by the transform coder's trellis
  bool at_most = false;                                // the work may end earlier
  std::optional<double> limit = std::nullopt;          // time limit in seconds
};
/// Returns the expected seconds of a run, without `limit`: from products that are timed now, and from the rates of
/// reading captures and coding values (docs/results/performance.md).
double expected_seconds(const Estimate& estimate, Backend& backend);
/// Prints "estimate: … on DEVICE" to stderr unless quiet.
void print_estimate(const Estimate& estimate, Backend& backend, const RunOptions& run);
/// Bytes of the weights in a backend's memory and of the embedding on the host: Model::weight_bytes() without the
/// padding of packed matrices. Reads no weight.
double loaded_weight_bytes(const ModelSource& source, DType type);
/// Returns pass_memory() with the loaded weights.
double session_memory(const ModelSession& session, std::size_t tokens);
/// Memory of one document's states of one layer from a capture.
double captured_memory(const CaptureHeader& header);

}  // namespace kvs::inline run
