// SPDX-License-Identifier: Apache-2.0
#include "model/rope_json.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/hf_options.h"

namespace kvs::inline model {

namespace {

using Type = RopeScaling::Type;

constexpr std::size_t kMaxKinds = 8;
constexpr std::size_t kMaxRotaryDim = 1 << 16;

std::vector<float> factor_list(const JsonCursor& list, std::size_t chunks) {
  if (list.array_size() != chunks) list.fail("a list of " + std::to_string(chunks) + " numbers (rotated channels / 2)");
  std::vector<float> factors;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    factors.push_back(static_cast<float>(list.at(chunk).positive_f32()));
    if (!(factors.back() > 0) || !std::isfinite(factors.back())) list.at(chunk).fail("a number that f32 holds");
  }
  return factors;
}

double original_context(const JsonCursor& rope, const RopeScalingContext& context) {
  if (context.original_context > 0) return context.original_context;  // Transformers prefers the value outside
  return hf_positive(rope, "original_max_position_embeddings", context.context);
}

double factor_of(const JsonCursor& rope, const RopeScalingContext& context, double original) {
  return rope.has("factor") ? rope.at("factor").positive_f32() : context.context / original;
}

RopeScaling parse_llama3(const JsonCursor& rope, const RopeScalingContext& context) {
  RopeScaling scaling{.type = Type::kLlama3};
  scaling.factor = rope.at("factor").positive_f32();
  scaling.low_frequency_factor = rope.at("low_freq_factor").positive_f32();
  scaling.high_frequency_factor = rope.at("high_freq_factor").positive_f32();
  if (!(scaling.high_frequency_factor > scaling.low_frequency_factor)) {
    rope.at("high_freq_factor").fail("a number above low_freq_factor");
  }
  scaling.original_context = original_context(rope, context);
  return scaling;
}

/// 0.1 · weight · ln(factor) + 1: YaRN's temperature, equation 22.
double yarn_temperature(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

RopeScaling parse_yarn(const JsonCursor& rope, const RopeScalingContext& context) {
  RopeScaling scaling{.type = Type::kYarn};
  scaling.original_context = original_context(rope, context);
  scaling.factor = factor_of(rope, context, scaling.original_context);
  scaling.beta_fast = hf_positive(rope, "beta_fast", scaling.beta_fast);
  scaling.beta_slow = hf_positive(rope, "beta_slow", scaling.beta_slow);
  if (scaling.beta_fast < scaling.beta_slow) rope.at("beta_fast").fail("a number not below beta_slow");
  if (rope.has("truncate")) scaling.truncate = rope.at("truncate").boolean();
  const double mscale = rope.has("mscale") ? rope.at("mscale").real() : 0;
  const double all_dim = rope.has("mscale_all_dim") ? rope.at("mscale_all_dim").real() : 0;
  if (rope.has("attention_factor")) {
    scaling.attention_factor = rope.at("attention_factor").positive_f32();
  } else if (mscale != 0 && all_dim != 0) {
    scaling.attention_factor = yarn_temperature(scaling.factor, mscale) / yarn_temperature(scaling.factor, all_dim);
    if (!(scaling.attention_factor > 0)) rope.at("mscale").fail("a weight whose attention factor is above 0");
  } else {
    scaling.attention_factor = yarn_temperature(scaling.factor, 1);
  }
  return scaling;
}

RopeScaling parse_longrope(const JsonCursor& rope, const RopeScalingContext& context) {
  RopeScaling scaling{.type = Type::kLongRope};
  scaling.original_context = original_context(rope, context);
  scaling.factors = factor_list(rope.at("short_factor"), context.chunks);
  scaling.long_factors = factor_list(rope.at("long_factor"), context.chunks);
  const double factor = factor_of(rope, context, scaling.original_context);
  if (rope.has("attention_factor")) {
    scaling.attention_factor = rope.at("attention_factor").positive_f32();
  } else if (factor > 1) {
    if (!(scaling.original_context > 1)) rope.fail("original_max_position_embeddings above 1");
    scaling.attention_factor = std::sqrt(1 + std::log(factor) / std::log(scaling.original_context));
  }
  return scaling;
}

RopeScaling parse_proportional(const JsonCursor& rope) {
  RopeScaling scaling{.type = Type::kProportional};
  scaling.factor = hf_positive(rope, "factor", 1);
  scaling.share = hf_positive(rope, "partial_rotary_factor", 1);
  if (scaling.share > 1) rope.at("partial_rotary_factor").fail("a share of a head's chunks, at most 1");
  return scaling;
}

}  // namespace

RopeScaling parse_rope_scaling(const JsonCursor& rope, const RopeScalingContext& context) {
  if (rope.is_null()) return {};
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";
  if (!rope.has(key)) {
    for (const std::string_view factor : {"factor", "short_factor", "long_factor"}) {
      if (rope.has(factor)) rope.fail("a rope_type with " + std::string(factor));
    }
    return {};
  }
  const std::string& type = rope.at(key).string();
  if (context.su_is_longrope && (type == "su" || type == "yarn")) return parse_longrope(rope, context);
  if (type == "default") return {};
  if (type == "proportional" && (context.proportional || context.inside)) return parse_proportional(rope);
  if (type == "linear") return {.type = Type::kLinear, .factor = rope.at("factor").positive_f32()};
  if (type == "dynamic") {
    if (context.chunks < 2) rope.at(key).fail("a type other than dynamic for heads of a single RoPE chunk");
    return {.type = Type::kDynamic,
            .factor = rope.at("factor").positive_f32(),
            .original_context = context.inside ? rope.at("max_position_embeddings").positive_f32() : context.context};
  }
  if (type == "llama3") return parse_llama3(rope, context);
  if (type == "yarn") return parse_yarn(rope, context);
  if (type == "longrope") return parse_longrope(rope, context);
  if (context.inside && type == "factors")
    return {.type = Type::kFactors, .factors = factor_list(rope.at("factors"), context.chunks)};
  if (context.inside && type == "none") return {.type = Type::kNone};
  throw Error(ErrorCode::kUnsupported, rope.at(key).place(),
              "found RoPE scaling \"" + type.substr(0, 80) +
                  "\", supported are: default, linear, dynamic, llama3, yarn, longrope" +
                  (context.proportional ? ", proportional" : ""));
}

Json rope_scaling_json(const RopeScaling& scaling) {
  switch (scaling.type) {
    case Type::kDefault:
      return nullptr;
    case Type::kLinear:
      return {{"rope_type", "linear"}, {"factor", scaling.factor}};
    case Type::kDynamic:
      return {
          {"rope_type", "dynamic"}, {"factor", scaling.factor}, {"max_position_embeddings", scaling.original_context}};
    case Type::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_frequency_factor},
              {"high_freq_factor", scaling.high_frequency_factor},
              {"original_max_position_embeddings", scaling.original_context}};
    case Type::kYarn:
      return {{"rope_type", "yarn"},
              {"factor", scaling.factor},
              {"original_max_position_embeddings", scaling.original_context},
              {"attention_factor", scaling.attention_factor},
              {"beta_fast", scaling.beta_fast},
              {"beta_slow", scaling.beta_slow},
              {"truncate", scaling.truncate}};
    case Type::kLongRope:
      return {{"rope_type", "longrope"},
              {"short_factor", scaling.factors},
              {"long_factor", scaling.long_factors},
              {"original_max_position_embeddings", scaling.original_context},
              {"attention_factor", scaling.attention_factor}};
    case Type::kProportional:
      return {{"rope_type", "proportional"}, {"factor", scaling.factor}, {"partial_rotary_factor", scaling.share}};
    case Type::kNone:
      return {{"rope_type", "none"}};
    case Type::kFactors:
      return {{"rope_type", "factors"}, {"factors", scaling.factors}};
  }
  return nullptr;
}

Json ropes_json(std::span<const RopeParameters> ropes) {
  Json list = Json::array();
  for (const RopeParameters& rope : ropes) {
    list.push_back(
        {{"theta", rope.theta}, {"rotary_dim", rope.rotary_dim}, {"scaling", rope_scaling_json(rope.scaling)}});
  }
  return list;
}

std::vector<RopeParameters> ropes_from_json(const JsonCursor& list) {
  if (list.array_size() == 0 || list.array_size() > kMaxKinds) list.fail("a list of 1 to 8 kinds of RoPE");
  std::vector<RopeParameters> ropes;
  for (std::size_t kind = 0; kind < list.array_size(); ++kind) {
    const JsonCursor object = list.at(kind);
    RopeParameters& rope = ropes.emplace_back();
    rope.theta = object.at("theta").positive_f32();
    rope.rotary_dim = static_cast<std::size_t>(object.at("rotary_dim").unsigned_integer(kMaxRotaryDim));
    if (rope.rotary_dim == 0 || rope.rotary_dim % 2 != 0) object.at("rotary_dim").fail("an even number above 0");
    // The context is stored in the scaling itself, so values outside are not needed.
    rope.scaling = parse_rope_scaling(object.at("scaling"), {.chunks = rope.chunks(), .context = 1, .inside = true});
  }
  return ropes;
}

}  // namespace kvs::inline model
