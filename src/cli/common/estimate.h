#pragma once

#include "cli/common/session.h"
#include "io/hdf5/capture_file.h"

namespace kvs {

/// What a run will take.
struct Estimate {
  double flops = 0, memory_bytes = 0, disk_bytes = 0;  // disk: written
  double read_bytes = 0;                               // of captures
};
/// Says "estimate: …" on stderr unless quiet; the time from one timed product and from the rate at which captures are
/// read and transformed (docs/performance.md).
void announce(const Estimate& estimate, Backend& backend, const RunOptions& run);
/// FLOPs of one layer, and of the language-model head, for `tokens` new tokens after `past` others.
double layer_flops(const ModelConfig& config, double tokens, double past = 0);
double head_flops(const ModelConfig& config, double tokens);
/// FLOPs of a forward pass over `tokens` tokens of one sequence with the head.
double forward_flops(const ModelConfig& config, double tokens);

/// Memory that a forward pass of one sequence of `tokens` needs with this model: weights and one layer's activations.
double session_memory(const ModelSession& session, std::size_t tokens);
/// Memory that one document's states of one layer take as they come from a capture.
double captured_memory(const CaptureHeader& header);

}  // namespace kvs
