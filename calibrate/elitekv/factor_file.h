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

namespace kvs {

/// The text that outputs are fitted to, and what runs it.
struct OutputText {
  Decoder* decoder = nullptr;
  std::span<const std::vector<std::int32_t>> documents = {};
};

/// Bytes of sums that fitting outputs holds at most, or one layer's (output_sum_bytes).
inline constexpr double kMaxOutputSums = 4e9;
/// Layers whose outputs are fitted in one pass over the documents: at 7B's shape 7, so 5 passes for 32 layers.
std::size_t outputs_at_once(const ModelConfig& model, double most = kMaxOutputSums) noexcept;

/// Called with a step's name and what is done of it.
using FactorProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// Factorises the layers of `config`, with fitted outputs if it says so, adds them to `outputs` as `file` and what came
/// of it to the config (factorise_layer). Tensors are made as they are written: memory holds one layer's factors, or
/// the sums of outputs_at_once() layers. S-LRD first takes a pass over the layers for its ranks, without singular
/// vectors. Fitted outputs read the factors from a temporary file of the same size beside `file`.
/// @param text  read if the config fits outputs;  @param most  bytes of sums: outputs_at_once
/// @return the file's name and digest.  @throws Error kEnvironment
ConfigFile write_factor_file(const FactorInput& input, const OutputText& text, const std::filesystem::path& file,
                             OutputSet& outputs, EliteConfig& config, const FactorProgress& progress,
                             double most = kMaxOutputSums);

}  // namespace kvs
