// SPDX-License-Identifier: Apache-2.0
#include "run/estimate.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "kernels/instruction_set.h"
#include "model/model_tensors.h"
#include "run/progress.h"

namespace kvs::inline run {
namespace {

constexpr double kCaptureBytesPerSecond = 0.9e9;  // read, checked and transformed
constexpr double kCodedValuesPerSecond = 0.67e6;  // of the trellis, per thread

double seconds_per_flop(Backend& backend) {
  constexpr std::size_t kRows = 512, kSize = 1024;
  const std::vector<float> ones(kRows * kSize, 1.0F);
  WeightSource source{
      kSize, kSize, [](std::size_t, std::size_t, std::span<float> out) { std::ranges::fill(out, 1.0F); }, {}};
  const auto weight = backend.make_weight(source);
  BackendTensor<float, 2> x(backend, {kRows, kSize}), y(backend, {kRows, kSize});
  BackendTensor<float, 1> gain(backend, {kSize});
  backend.upload(x.view().data(), ones.data(), x.bytes());
  backend.upload(gain.view().data(), ones.data(), gain.bytes());
  BackendTensor<std::byte, 1> operand_memory(backend, {operand_bytes(backend, kRows, kSize)});
  const Operand operand{operand_memory.view().data(), kRows, kSize};
  backend.rms_norm(x.view(), gain.view(), 1e-5F, operand);
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    backend.linear(operand, *weight, y.view(), false);
    float probe = 0;
    backend.download(&probe, y.view().data(), sizeof probe);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best / (2.0 * kRows * kSize * kSize);
}

/// Returns the processor, the arithmetic in use, and whether the other --dtype would be faster.
std::string processor_note(const Backend& backend) {
  if (backend.device() != "cpu") return "";
  const bool bf16 = backend.compute_type() == DType::kBF16;
  std::string note = " (" + std::string(name_of(instruction_set()));
  if (bf16 != has_bf16_products()) note += bf16 ? "; bf16 is no faster than f32 here" : "; --dtype bf16 is faster here";
  return note + ")";
}

}  // namespace

double loaded_weight_bytes(const ModelSource& source, DType type) {
  double bytes = 0;
  for (const std::vector<std::uint64_t>& shape : source.tensors().shapes()) {
    const bool is_matrix = shape.size() > 1;  // vectors stay f32
    const auto values =
        static_cast<double>(std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>()));
    bytes += values * static_cast<double>(is_matrix ? item_size(type) : sizeof(float));
  }
  const ModelConfig& config = source.config();
  if (config.tied_head)  // packed for products; the rows for lookups are stored in addition
    bytes += static_cast<double>(config.vocabulary * config.d_model * item_size(type));
  return bytes;
}

double session_memory(const ModelSession& session, std::size_t tokens) {
  return pass_memory(session.config(), static_cast<double>(session.model->weight_bytes()), tokens);
}

double captured_memory(const CaptureHeader& header) {
  std::size_t most = 0;  // values of a layer
  for (const std::int32_t layer : header.layers) {
    std::size_t values = 0;
    for (const StateKind kind : header.states) {
      const auto [heads, tokens, head_dim] = header.shape_of(static_cast<std::size_t>(layer), kind);
      values += heads * tokens * head_dim;
    }
    most = std::max(most, values);
  }
  return 2.0 * static_cast<double>(most * sizeof(float));  // counted twice: as read, and in the backend's memory
}

double expected_seconds(const Estimate& estimate, Backend& backend) {
  // Products alone run at the measured rate; the rest of a pass adds about a fifth (docs/results/performance.md).
  const double computing = estimate.flops > 0 ? 1.2 * estimate.flops * seconds_per_flop(backend) : 0;
  return computing + estimate.read_bytes / kCaptureBytesPerSecond +
         estimate.coded_values / kCodedValuesPerSecond / omp_get_max_threads();
}

void print_estimate(const Estimate& estimate, Backend& backend, const RunOptions& run) {
  if (run.quiet) return;
  std::string line = "estimate: " + human_bytes(estimate.memory_bytes) + " memory";
  if (estimate.disk_bytes > 0) line += ", " + human_bytes(estimate.disk_bytes) + " disk";
  if (estimate.read_bytes > 0) line += ", " + human_bytes(estimate.read_bytes) + " read";
  const double seconds = expected_seconds(estimate, backend);
  line += ", ";
  if (estimate.limit && *estimate.limit < seconds) line += human_seconds(*estimate.limit) + " of ";
  line += (estimate.at_most ? "at most " : "") + human_seconds(seconds);
  line += " on " + std::string(backend.device()) + processor_note(backend);
  print_note(line, false);
}

}  // namespace kvs::inline run
