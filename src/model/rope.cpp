#include "model/rope.h"

#include <cmath>
#include <numbers>

#include "io/json.h"

namespace kvs {

namespace {

/// Source: Transformers' _compute_llama3_parameters. `scalar / tensor` is reciprocal times scalar in PyTorch.
float llama3_frequency(float frequency, const RopeScaling& scaling) {
  const auto factor = static_cast<float>(scaling.factor);
  const float wavelength = (1.0F / frequency) * static_cast<float>(2 * std::numbers::pi);
  const auto low = static_cast<float>(scaling.original_context / scaling.low_frequency_factor);
  const auto high = static_cast<float>(scaling.original_context / scaling.high_frequency_factor);
  if (wavelength > low) return frequency / factor;
  if (wavelength < high) return frequency;
  const float turns = (1.0F / wavelength) * static_cast<float>(scaling.original_context);
  const float smooth = (turns - static_cast<float>(scaling.low_frequency_factor)) /
                       static_cast<float>(scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

float scaled_frequency(float frequency, std::size_t chunk, const RopeScaling& scaling) {
  switch (scaling.type) {
    case RopeScaling::Type::kLinear:
      return frequency / static_cast<float>(scaling.factor);
    case RopeScaling::Type::kLlama3:
      return llama3_frequency(frequency, scaling);
    case RopeScaling::Type::kFactors:
      return frequency / scaling.factors[chunk];
    case RopeScaling::Type::kDefault:
      break;
  }
  return frequency;
}

}  // namespace

std::vector<double> rope_frequencies(double theta, std::size_t head_dim, const RopeScaling& scaling) {
  std::vector<double> frequencies(head_dim / 2);
  const double base = static_cast<float>(theta);
  for (std::size_t chunk = 0; chunk < frequencies.size(); ++chunk) {
    const float exponent = static_cast<float>(2 * chunk) / static_cast<float>(head_dim);
    const float frequency = 1.0F / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
    frequencies[chunk] = scaled_frequency(frequency, chunk, scaling);
  }
  return frequencies;
}

std::string rope_scaling_json(const RopeScaling& scaling) {
  Json json;
  switch (scaling.type) {
    case RopeScaling::Type::kDefault:
      return "null";
    case RopeScaling::Type::kLinear:
      json = {{"rope_type", "linear"}, {"factor", scaling.factor}};
      break;
    case RopeScaling::Type::kLlama3:
      json = {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_frequency_factor},
              {"high_freq_factor", scaling.high_frequency_factor},
              {"original_max_position_embeddings", scaling.original_context}};
      break;
    case RopeScaling::Type::kFactors:
      json = {{"rope_type", "factors"}, {"factors", scaling.factors}};
      break;
  }
  return dump_json(json, -1);
}

RopeMemory make_rope_memory(Backend& backend, std::span<const double> frequencies, std::size_t positions) {
  const std::size_t chunks = frequencies.size();
  std::vector<float> cosine(positions * chunks), sine(positions * chunks);
  for (std::size_t position = 0; position < positions; ++position) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const float angle = static_cast<float>(position) * static_cast<float>(frequencies[chunk]);
      cosine[position * chunks + chunk] = static_cast<float>(std::cos(static_cast<double>(angle)));
      sine[position * chunks + chunk] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
  RopeMemory memory{BackendTensor<float, 2>(backend, {positions, chunks}),
                    BackendTensor<float, 2>(backend, {positions, chunks})};
  backend.upload(memory.cosine.view().data(), cosine.data(), memory.cosine.bytes());
  backend.upload(memory.sine.view().data(), sine.data(), memory.sine.bytes());
  return memory;
}

}  // namespace kvs
