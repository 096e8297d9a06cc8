#include <cmath>

#include "core/error.h"
#include "io/gguf.h"
#include "model/rope.h"
#include "model/rope_config.h"

namespace kvs {

namespace {

constexpr std::uint64_t kMostContext = 1UL << 40;

/// The rope.* keys and tensors of one file.
class RopeKeys {
 public:
  RopeKeys(const GgufFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return file_.has(name(key)); }
  double positive(std::string_view key) const {
    const double value = file_.get_real(name(key));
    if (!(value > 0)) fail(ErrorCode::kInput, key, "found " + std::to_string(value) + ", expected a number above 0");
    return value;
  }
  double positive_or(std::string_view key, double otherwise) const { return has(key) ? positive(key) : otherwise; }
  std::uint64_t count(std::string_view key, std::uint64_t most) const { return file_.get_unsigned(name(key), most); }
  std::string text(std::string_view key) const { return std::string(file_.get_string(name(key))); }

  /// A key that would change the arithmetic in a way that is not built.
  void must_be(std::string_view key, double expected) const {
    if (!has(key) || file_.get_real(name(key)) == expected) return;
    fail(ErrorCode::kUnsupported, key,
         "found " + std::to_string(file_.get_real(name(key))) + ", supported is: " + std::to_string(expected));
  }

  /// One divisor per chunk, or nothing if the file lacks the tensor.
  std::vector<float> factors(const std::string& tensor, std::size_t chunks) const {
    const StoredTensor* stored = file_.find(tensor + ".weight");
    if (stored == nullptr) return {};
    const std::string where = file_.path().string() + ": tensor " + tensor + ".weight";
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
  [[noreturn]] void fail(ErrorCode code, std::string_view key, const std::string& problem) const {
    throw Error(code, file_.path().string() + ": " + name(key), problem);
  }

 private:
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  const GgufFile& file_;
  std::string prefix_;
};

/// llama.cpp multiplies YaRN's own temperature 0.1 ln(factor) + 1 by attn_factor.
RopeScaling parse_yarn(const RopeKeys& keys, double original_context, double attention_factor) {
  RopeScaling scaling{.type = RopeScaling::Type::kYarn, .factor = keys.positive("rope.scaling.factor")};
  scaling.original_context = original_context;
  scaling.beta_fast = keys.positive_or("rope.scaling.yarn_beta_fast", scaling.beta_fast);
  scaling.beta_slow = keys.positive_or("rope.scaling.yarn_beta_slow", scaling.beta_slow);
  keys.must_be("rope.scaling.yarn_ext_factor", 1);
  keys.must_be("rope.scaling.yarn_log_multiplier", 0);
  const double own = scaling.factor > 1 ? 0.1 * std::log(scaling.factor) + 1 : 1;
  scaling.attention_factor = own * attention_factor;
  return scaling;
}

/// What rope.scaling.* say; tensors of factors come on top.
RopeScaling parse_keys(const RopeKeys& keys, double original_context, double attention_factor) {
  const std::string type = keys.has("rope.scaling.type") ? keys.text("rope.scaling.type") : "";
  if (type == "yarn") return parse_yarn(keys, original_context, attention_factor);
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

RopeScaling parse_scaling(const RopeKeys& keys, std::size_t chunks, std::size_t context) {
  const double original = keys.has("rope.scaling.original_context_length")
                              ? static_cast<double>(keys.count("rope.scaling.original_context_length", kMostContext))
                              : static_cast<double>(context);
  if (original == 0)
    keys.fail(ErrorCode::kInput, "rope.scaling.original_context_length", "found 0, expected 1 or more");
  const double attention_factor = keys.positive_or("rope.scaling.attn_factor", 1);
  RopeScaling scaling = parse_keys(keys, original, attention_factor);
  // As llama.cpp: rope_freqs is preferred, and the long factors serve lengths beyond the original context.
  std::vector<float> always = keys.factors("rope_freqs", chunks),
                     long_factors = keys.factors("rope_factors_long", chunks),
                     short_factors = keys.factors("rope_factors_short", chunks);
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
    if (attention_factor != 1 && scaling.type != RopeScaling::Type::kYarn) keys.must_be("rope.scaling.attn_factor", 1);
    return scaling;
  }
  if (scaling.type != RopeScaling::Type::kDefault) {
    keys.fail(ErrorCode::kUnsupported, "rope.scaling.type",
              "found a scaling beside tensors of factors, supported is: one");
  }
  if (by_length) {
    return {.type = RopeScaling::Type::kLongRope,
            .original_context = original,
            .attention_factor = attention_factor,
            .factors = std::move(short_factors),
            .long_factors = std::move(long_factors)};
  }
  keys.must_be("rope.scaling.attn_factor", 1);
  return {.type = RopeScaling::Type::kFactors, .factors = std::move(always)};
}

std::size_t rotary_dim(const RopeKeys& keys, std::size_t head_dim) {
  if (!keys.has("rope.dimension_count")) return head_dim;
  const auto channels = static_cast<std::size_t>(keys.count("rope.dimension_count", UINT32_MAX));
  if (channels == 0 || channels % 2 != 0 || channels > head_dim) {
    keys.fail(ErrorCode::kInput, "rope.dimension_count",
              "found " + std::to_string(channels) + ", expected an even number up to the head size, " +
                  std::to_string(head_dim));
  }
  return channels;
}

}  // namespace

void parse_gguf_rope(const GgufFile& file, const std::string& prefix, const RopeDefaults& defaults,
                     ModelConfig& config) {
  const RopeKeys keys(file, prefix);
  RopeParameters rope{.theta = keys.positive_or("rope.freq_base", defaults.theta),
                      .rotary_dim = rotary_dim(keys, config.head_dim)};
  rope.scaling = parse_scaling(keys, rope.chunks(), config.context);
  config.ropes = {rope};
  if (defaults.window_theta == 0) return;
  const double theta = keys.positive_or("rope.freq_base_swa", defaults.window_theta);
  set_window_rope(config, rope, {.theta = theta, .rotary_dim = rope.rotary_dim});
}

}  // namespace kvs
