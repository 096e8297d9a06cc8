// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/elitekv/factors.h"
#include "io/output_set.h"
#include "model/decoder.h"

namespace kvs::inline calibrate {

/// The text for fitting outputs, and the model that runs it.
struct OutputText {
  Decoder* decoder = nullptr;
  std::span<const std::vector<std::int32_t>> documents = {};
};

/// Maximum bytes of sums for fitting outputs; at least one layer's sums are held (output_sum_bytes()).
inline constexpr double kMaxOutputSums = 4e9;
/// Returns the number of layers whose outputs are fitted in one pass over the documents(7B: 7, so 5 passes for 32
/// layers).
std::size_t outputs_at_once(const ModelConfig& model, double most = kMaxOutputSums) noexcept;

/// Called with a step's name, the completed units and their total.
using FactorProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// Factorises the layers of `config`, with fitted outputs if it requests them, adds them to `outputs` as `file`, and
/// adds the results to the config (factorise_layer()). Tensors are computed as they are written: memory holds one
/// layer's factors, or the sums of outputs_at_once() layers. For S-LRD, a pass over the layers first determines the
/// ranks, without singular vectors. Fitted outputs read the factors from a temporary file of equal size next to `file`.
/// @param text  read if the config fits outputs;  @param most  bytes of sums, as for outputs_at_once()
/// @return the file's name and digest.  @throws Error kEnvironment
ConfigFile write_factor_file(const FactorInput& input, const OutputText& text, const std::filesystem::path& file,
                             OutputSet& outputs, EliteConfig& config, const FactorProgress& progress,
                             double most = kMaxOutputSums);

}  // namespace kvs::inline calibrate
