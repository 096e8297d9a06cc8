#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace kvs {

/// How a model stretches RoPE's frequencies beyond its first training length.
struct RopeScaling {
  enum class Type { kDefault, kLinear, kLlama3, kFactors };
  Type type = Type::kDefault;
  double factor = 1;                 // kLinear, kLlama3
  double low_frequency_factor = 1;   // kLlama3
  double high_frequency_factor = 4;  // kLlama3
  double original_context = 8192;    // kLlama3
  std::vector<float> factors = {};   // kFactors: [head_dim / 2], each chunk's divisor (GGUF rope_freqs)
};

/// Radians per token of each chunk: theta^(-2c / head_dim), scaled. [head_dim / 2], each a value of f32.
/// Arithmetic in f32 as Transformers' modeling_rope_utils.py, so that angles agree to the last bit or nearly so.
std::vector<double> rope_frequencies(double theta, std::size_t head_dim, const RopeScaling& scaling);

/// The scaling as JSON text, with Transformers' key names; "null" for none.
std::string rope_scaling_json(const RopeScaling& scaling);

/// cos and sin in backend memory.
struct RopeMemory {
  BackendTensor<float, 2> cosine, sine;  // [position, head_dim / 2]
  RopeTable table() const { return {cosine.view(), sine.view()}; }
};

/// The angle is f32(position) · f32(frequency) rounded to f32, as Transformers computes it; its cos and sin are taken
/// in double and rounded. Cost: positions · head_dim transcendental functions.
RopeMemory make_rope_memory(Backend& backend, std::span<const double> frequencies, std::size_t positions);

}  // namespace kvs
