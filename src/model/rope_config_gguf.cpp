// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/error.h"
#include "io/gguf.h"
#include "model/gguf_keys.h"
#include "model/parsed_config.h"
#include "model/rope_config.h"

namespace kvs::inline model {

namespace {

/// Refuses a key whose value would change the arithmetic in an unsupported way.
void must_be(const GgufKeys& keys, std::string_view key, double expected) {
  if (!keys.has(key) || keys.real(key) == expected) return;
  keys.fail(ErrorCode::kUnsupported, key,
            "found " + std::to_string(keys.real(key)) + ", supported is: " + std::to_string(expected));
}

// Bases of all layers or of those without a window, and of those with one; Ollama's spellings follow.
constexpr std::array<std::string_view, 2> kBases{"rope.freq_base", "rope.global.freq_base"};
constexpr std::array<std::string_view, 3> kWindowBases{"rope.freq_base_swa", "rope.local.freq_base",
                                                       "rope.freq_base_local"};

/// Reads a base under its spellings, of which all that a file has must be equal.
double base_of(const GgufKeys& keys, std::span<const std::string_view> spellings, double otherwise) {
  const auto stated = std::ranges::find_if(spellings, [&](std::string_view key) { return keys.has(key); });
  const double base = stated == spellings.end() ? otherwise : keys.positive(*stated);
  for (const std::string_view key : spellings) must_be(keys, key, base);
  return base;
}

/// Returns one divisor per chunk, or nothing if the file lacks the tensor.
std::vector<float> read_factors(const GgufFile& file, const std::string& tensor, std::size_t chunks) {
  const StoredTensor* stored = file.find(tensor + ".weight");
  if (stored == nullptr) return {};
  const std::string where = file.path().string() + ": tensor " + tensor + ".weight";
  if (stored->type == nullptr || stored->shape.size() != 1 || stored->shape[0] != chunks) {
    throw Error(ErrorCode::kInput, where, "expected " + std::to_string(chunks) + " floats (rotated channels / 2)");
  }
  std::vector<float> values(chunks);
  read_rows(*stored, 0, 1, values);
  for (const float value : values) {
    if (value > 0 && std::isfinite(value)) continue;
    throw Error(ErrorCode::kInput, where, "found " + std::to_string(value) + ", expected numbers above 0");
  }
  return values;
}

/// llama.cpp multiplies YaRN's own temperature 0.1 ln(factor) + 1 by attn_factor.
RopeScaling parse_yarn(const GgufKeys& keys, const RopeDefaults& defaults, double original_context,
                       double attention_factor) {
  RopeScaling scaling{.type = RopeScaling::Type::kYarn, .factor = keys.positive("rope.scaling.factor")};
  scaling.original_context = original_context;
  const auto bound = [&](const std::string& key, double otherwise) {  // Ollama's spelling lacks "yarn_"
    return keys.positive_or("rope.scaling.yarn_" + key, keys.positive_or("rope.scaling." + key, otherwise));
  };
  scaling.beta_fast = bound("beta_fast", scaling.beta_fast);
  scaling.beta_slow = bound("beta_slow", scaling.beta_slow);
  for (const char* const key : {"rope.scaling.yarn_ext_factor", "rope.scaling.extrapolation_factor"})
    must_be(keys, key, 1);
  scaling.truncate = defaults.gguf_truncates;
  constexpr std::string_view kMultiplier = "rope.scaling.yarn_log_multiplier";
  const auto temperature = [&](double weight) {
    return scaling.factor > 1 ? 0.1 * weight * std::log(scaling.factor) + 1 : 1;
  };
  double weight = 0;
  if (defaults.gguf_score_multiplier)  // with it, scores are multiplied instead of cos and sin
    weight = keys.has(kMultiplier) ? 1 : 0;
  else if (defaults.gguf_log_multiplier)
    weight = keys.has(kMultiplier) ? keys.real(kMultiplier) : 0;
  else
    must_be(keys, kMultiplier, 0);
  scaling.attention_factor = attention_factor * temperature(1) / temperature(weight);
  if (!(scaling.attention_factor > 0))
    keys.fail(ErrorCode::kInput, kMultiplier, "found a weight whose attention factor is not above 0");
  return scaling;
}

/// Reads rope.scaling.*; tensors of factors are applied later.
RopeScaling parse_keys(const GgufKeys& keys, const RopeDefaults& defaults, double original_context,
                       double attention_factor) {
  const std::string type = keys.has("rope.scaling.type") ? keys.text("rope.scaling.type") : "";
  if (type == "yarn") return parse_yarn(keys, defaults, original_context, attention_factor);
  if (!type.empty() && type != "none" && type != "linear" && type != "longrope") {
    keys.fail(ErrorCode::kUnsupported, "rope.scaling.type",
              "found RoPE scaling \"" + type.substr(0, 80) +
                  "\", supported are: none, linear, yarn, longrope, tensors of factors");
  }
  const double factor =
      keys.has("rope.scaling.factor") ? keys.positive("rope.scaling.factor") : keys.positive_or("rope.scale_linear", 1);
  if (type == "none" || type == "longrope" || factor == 1) return {};
  return {.type = RopeScaling::Type::kLinear, .factor = factor};
}

RopeScaling parse_scaling(const GgufFile& file, const GgufKeys& keys, const RopeDefaults& defaults, std::size_t chunks,
                          std::size_t context) {
  const double original =
      keys.has("rope.scaling.original_context_length")
          ? static_cast<double>(keys.unsigned_integer("rope.scaling.original_context_length", kMaxContext))
          : static_cast<double>(context);
  if (original == 0)
    keys.fail(ErrorCode::kInput, "rope.scaling.original_context_length", "found 0, expected 1 or more");
  const double attention_factor = keys.positive_or("rope.scaling.attn_factor", 1);
  RopeScaling scaling = parse_keys(keys, defaults, original, attention_factor);
  // Like llama.cpp: rope_freqs is preferred, and the long factors are used for lengths beyond the original context.
  std::vector<float> always = read_factors(file, "rope_freqs", chunks),
                     long_factors = read_factors(file, "rope_factors_long", chunks),
                     short_factors = read_factors(file, "rope_factors_short", chunks);
  const bool by_length = always.empty() && !long_factors.empty();
  if (by_length != (always.empty() && !short_factors.empty())) {
    keys.fail(ErrorCode::kInput, "rope",
              "found one of the tensors rope_factors_long and rope_factors_short, expected both");
  }
  if (always.empty() && !by_length) {
    if (keys.has("rope.scaling.type") && keys.text("rope.scaling.type") == "longrope") {
      keys.fail(ErrorCode::kInput, "rope.scaling.type",
                "found longrope without tensors of factors, expected rope_factors_long and rope_factors_short");
    }
    if (attention_factor != 1 && scaling.type != RopeScaling::Type::kYarn) must_be(keys, "rope.scaling.attn_factor", 1);
    return scaling;
  }
  if (scaling.type != RopeScaling::Type::kDefault) {
    keys.fail(ErrorCode::kUnsupported, "rope.scaling.type",
              "found a scaling, which cannot be combined with tensors of factors");
  }
  if (by_length) {
    return {.type = RopeScaling::Type::kLongRope,
            .original_context = original,
            .attention_factor = attention_factor,
            .factors = std::move(short_factors),
            .long_factors = std::move(long_factors)};
  }
  must_be(keys, "rope.scaling.attn_factor", 1);
  return {.type = RopeScaling::Type::kFactors, .factors = std::move(always)};
}

/// @param otherwise  if the key is missing
std::size_t rotary_dim(const GgufKeys& keys, std::string_view key, std::size_t head_dim, std::size_t otherwise) {
  if (!keys.has(key)) return otherwise;
  const auto channels = static_cast<std::size_t>(keys.unsigned_integer(key, UINT32_MAX));
  if (channels == 0 || channels % 2 != 0 || channels > head_dim) {
    keys.fail(ErrorCode::kInput, key,
              "found " + std::to_string(channels) + ", expected an even number up to the head size, " +
                  std::to_string(head_dim));
  }
  return channels;
}

/// Gemma 4's converter writes a divisor of 1 for each chunk that rotates, and 1e30 for the others, which are the last.
RopeScaling as_proportional(const GgufKeys& keys, RopeScaling scaling) {
  constexpr float kNever = 1e30F;
  if (scaling.type != RopeScaling::Type::kFactors)
    keys.fail(ErrorCode::kInput, "rope", "found no tensor rope_freqs, which says the chunks that rotate, expected one");
  const std::vector<float>& factors = scaling.factors;
  const auto end = std::ranges::find_if(factors, [](float factor) { return factor != 1; });
  if (std::any_of(end, factors.end(), [](float factor) { return factor < kNever; })) return scaling;
  const auto turning = static_cast<double>(end - factors.begin()), all = static_cast<double>(factors.size());
  const double share = turning / all;  // the product with `all` is rounded down when it is used
  return {.type = RopeScaling::Type::kProportional, .share = share * all < turning ? std::nextafter(share, 1) : share};
}

}  // namespace

void parse_gguf_rope(const GgufFile& file, const GgufKeys& keys, const RopeDefaults& defaults, ModelConfig& config) {
  const std::size_t head_dim = head_dim_of(config, false), window_head_dim = head_dim_of(config, true);
  RopeParameters rope{.theta = base_of(keys, kBases, defaults.theta),
                      .rotary_dim = rotary_dim(keys, "rope.dimension_count", head_dim, head_dim)};
  rope.scaling = parse_scaling(file, keys, defaults, rope.chunks(), config.context);
  if (defaults.proportional_share > 0) rope.scaling = as_proportional(keys, std::move(rope.scaling));
  config.ropes = {rope};
  if (defaults.window_theta == 0) {
    for (const std::string_view key : kWindowBases) must_be(keys, key, rope.theta);
    keys.must_equal("rope.dimension_count_swa", rope.rotary_dim, "the number of the other layers");
    return;
  }
  const double theta =
      base_of(keys, kWindowBases, defaults.window_theta_key.empty() ? rope.theta : defaults.window_theta);
  const std::size_t otherwise = std::min(rope.rotary_dim, window_head_dim);
  set_window_rope(
      config, rope,
      {.theta = theta, .rotary_dim = rotary_dim(keys, "rope.dimension_count_swa", window_head_dim, otherwise)});
}

}  // namespace kvs::inline model
