// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "model/rope_config.h"
#include "model/rope_json.h"

namespace kvs::inline model {

namespace {

constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";

/// Returns the first of `keys` that `object` has, or "".
std::string_view first_key(const JsonCursor& object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!key.empty() && object.has(key)) return key;
  }
  return "";
}

/// Refuses a key of other classes' configs, which Transformers ignores in this class, unless it repeats the used value.
void refuse_unless_same(const JsonCursor& root, std::string_view key, std::string_view own, double holds) {
  if (key == own || !root.has(key) || root.at(key).positive_f32() == holds) return;
  throw Error(ErrorCode::kUnsupported, root.at(key).place(),
              "found " + describe_json(root.at(key).value()) +
                  ", which Transformers passes over in this architecture; supported is: " + describe_json(Json(holds)));
}

/// Returns the number of rotated channels: int(head_dim · share), rounded like Transformers.
std::size_t rotary_dim(const JsonCursor& root, const JsonCursor& scaling, const RopeDefaults& defaults,
                       std::size_t head_dim) {
  double share = defaults.share;
  std::string place = root.place();
  const auto read = [&](const JsonCursor& object, std::string_view key) {
    share = object.at(key).positive_f32();
    place = object.at(key).place();
    if (share > 1) object.at(key).fail("a share of a head's channels, at most 1");
  };
  if (!defaults.share_key.empty() && root.has(defaults.share_key))
    read(root, defaults.share_key);
  else if (!defaults.channels_key.empty() && root.has(defaults.channels_key))
    share = static_cast<double>(root.at(defaults.channels_key).integer(1, static_cast<std::int64_t>(head_dim))) /
            static_cast<double>(head_dim);
  if (!scaling.is_null() && scaling.has("partial_rotary_factor")) read(scaling, "partial_rotary_factor");
  if (share != 1 && defaults.share_key.empty()) {
    throw Error(
        ErrorCode::kUnsupported, place,
        "found a part of each head rotated, which this architecture does not do in Transformers; supported is: 1");
  }
  for (const std::string_view key : {"partial_rotary_factor", "rotary_pct"})
    refuse_unless_same(root, key, defaults.share_key, share);
  const auto channels = static_cast<std::size_t>(static_cast<double>(head_dim) * share);
  if (channels == 0) {
    throw Error(ErrorCode::kInput, place,
                "found 0 of " + std::to_string(head_dim) + " channels rotated, expected 1 or more");
  }
  return channels;
}

RopeScalingContext scaling_context(const JsonCursor& root, const RopeDefaults& defaults, const RopeParameters& rope,
                                   const ModelConfig& config) {
  RopeScalingContext context{.chunks = rope.chunks(),
                             .context = static_cast<double>(config.context),
                             .original_context = defaults.original_context,
                             .su_is_longrope = defaults.su_is_longrope,
                             .proportional = defaults.proportional_share > 0};
  constexpr std::string_view kOriginal = "original_max_position_embeddings";
  if (root.has(kOriginal)) context.original_context = root.at(kOriginal).positive_f32();
  return context;
}

bool per_layer_type(const JsonCursor& rope) {
  if (rope.is_null()) return false;
  return rope.value().contains(kFull) || rope.value().contains(kSliding);
}

void refuse_per_layer_type(const JsonCursor& rope) {
  if (rope.is_null()) return;
  for (const std::string& key : rope.keys()) {
    if (!rope.at(key).value().is_object()) continue;
    throw Error(ErrorCode::kUnsupported, rope.at(key).place(),
                "found RoPE parameters per type of layer, supported are: one set for all layers of this architecture");
  }
}

/// Gemma 3 in Transformers 5: one object per type of layer; a missing object means the default of its type.
RopeParameters parse_nested(const JsonCursor& nested, std::string_view type, double theta,
                            const RopeScalingContext& context, std::size_t channels) {
  RopeParameters rope{.theta = theta, .rotary_dim = channels};
  if (!nested.has(type)) return rope;
  const JsonCursor object = nested.at(type);
  for (const JsonCursor& place : {nested, object}) {
    if (!place.has("truncate") || place.at("truncate").boolean()) continue;
    throw Error(ErrorCode::kUnsupported, place.at("truncate").place(),
                "found false, which Transformers 5 passes over per type of layer; supported is: true");
  }
  if (object.has("rope_theta")) rope.theta = object.at("rope_theta").positive_f32();
  RopeScalingContext own = context;
  own.original_context = 0;
  rope.scaling = parse_rope_scaling(object, own);
  return rope;
}

/// Returns the base inside `scaling`. A key outside `scaling` may only repeat it.
double theta_of(const JsonCursor& root, const JsonCursor& scaling, std::string_view beside, double otherwise) {
  const double theta = beside.empty() ? otherwise : root.at(beside).positive_f32();
  if (scaling.is_null() || !scaling.has("rope_theta")) return theta;
  const JsonCursor inside = scaling.at("rope_theta");
  if (!beside.empty() && inside.positive_f32() != theta)
    inside.fail(describe_json(root.at(beside).value()) + ", the value of /" + std::string(beside));
  return inside.positive_f32();
}

/// For models with a RoPE per type of layer, Transformers 5 merges rope_scaling into the object of the full-attention
/// layers. Their rope_type is kept if rope_scaling uses another name for it, and rope_parameters without a type are
/// ignored.
void refuse_passed_over(const JsonCursor& root, const JsonCursor& scaling) {
  if (scaling.is_null()) return;
  const bool old = root.has("rope_scaling") && !root.at("rope_scaling").value().empty();
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorCode::kUnsupported, scaling.place(), problem);
  };
  if (!old && !per_layer_type(scaling))
    refuse("found RoPE parameters for all layers, supported is: an object for each type of layer");
  if (!old) return;
  if (per_layer_type(scaling))
    refuse("found RoPE parameters per type of layer, which Transformers reads in rope_parameters only");
  if (root.has("rope_parameters") && !root.at("rope_parameters").value().empty())
    refuse("found rope_scaling, which cannot be combined with rope_parameters");
  if (!scaling.has("rope_type") && scaling.has("type") && scaling.at("type").string() != "default")
    refuse("found the key type, which Transformers 5 passes over in this architecture; expected rope_type");
}

/// For n channels with n odd, Transformers computes (n + 1) / 2 frequencies base^(−2c / n) and rotates n + 1 channels.
/// This equals a rotary part of n + 1 channels with the base base^((n + 1) / n).
void complete_pair(const JsonCursor& scaling, RopeParameters& rope, std::vector<std::string>& notes) {
  const std::size_t turned = rope.rotary_dim, asked = turned - 1;
  const std::string found = std::to_string(asked) + " rotated channels, an odd number";
  const std::string_view key = scaling.is_null() ? "" : first_key(scaling, {"rope_type", "type"});
  const std::string type = key.empty() ? "default" : scaling.at(key).string();
  if (type != "default" && type != "linear" && type != "llama3") {
    throw Error(ErrorCode::kUnsupported, scaling.place(),
                "found this RoPE scaling of " + found + "; supported are: default, linear, llama3, or an even number");
  }
  rope.theta = std::pow(rope.theta, static_cast<double>(turned) / static_cast<double>(asked));
  notes.push_back(scaling.place() + ": found " + found + ": as in Transformers " + std::to_string(turned) +
                  " turn, as if the base were " + std::to_string(rope.theta));
}

/// Returns the base of a dynamic scaling with a fixed alpha, or nothing for other scalings.
std::optional<double> alpha_base(const JsonCursor& scaling, double theta, std::size_t head_dim) {
  if (scaling.is_null() || !scaling.has("alpha")) return std::nullopt;
  const std::string_view key = first_key(scaling, {"rope_type", "type"});
  if (key.empty() || scaling.at(key).string() != "dynamic" || scaling.at("alpha").real() == 0) return std::nullopt;
  if (head_dim < 3) scaling.at("alpha").fail("no alpha for heads of one RoPE chunk");
  const auto dim = static_cast<double>(head_dim);
  return theta * std::pow(scaling.at("alpha").positive_f32(), dim / (dim - 2));
}

/// Returns the number of rotated channels. In latent attention they are those of the shared key, whatever share of a
/// head they are.
std::size_t rotary_dim_of(const JsonCursor& root, const JsonCursor& scaling, const RopeDefaults& defaults,
                          const AttentionConfig& attention) {
  if (!attention.is_latent()) return rotary_dim(root, scaling, defaults, attention.head_dim);
  const std::size_t shared = attention.shared_key_dim();
  const std::string_view key = defaults.share_key;
  const bool of_head = !key.empty() && (root.has(key) || (!scaling.is_null() && scaling.has(key)));
  const std::size_t head = of_head ? attention.latent.plain_dim + shared : shared;
  if (rotary_dim(root, scaling, defaults, head) != shared)
    scaling.fail("a partial_rotary_factor that gives the " + std::to_string(shared) + " channels of qk_rope_head_dim");
  return shared;
}

}  // namespace

std::size_t head_dim_of(const ModelConfig& config, bool windowed) {
  const auto found = std::ranges::find_if(
      config.layer, [&](const LayerConfig& layer) { return (layer.attention.window != 0) == windowed; });
  return (found == config.layer.end() ? config.layer.front() : *found).attention.head_dim;
}

JsonCursor scaling_object(const JsonCursor& root) {
  static const Json kNone;
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (root.has(key) && !root.at(key).value().empty()) return root.at(key);
  }
  return {kNone, root.place()};
}

void set_unrotated(ModelConfig& config, const std::vector<bool>& unrotated) {
  if (std::ranges::find(unrotated, true) == unrotated.end()) return;
  config.ropes.push_back({.theta = config.ropes.front().theta,
                          .rotary_dim = config.ropes.front().rotary_dim,
                          .scaling = {.type = RopeScaling::Type::kNone}});
  for (std::size_t layer = 0; layer < unrotated.size(); ++layer)
    if (unrotated[layer]) config.layer[layer].attention.rope = config.ropes.size() - 1;
}

void set_window_rope(ModelConfig& config, const RopeParameters& full, const RopeParameters& windowed) {
  config.ropes = {full, windowed};
  for (LayerConfig& layer : config.layer) layer.attention.rope = layer.attention.window != 0 ? 1 : 0;
}

void parse_hf_rope(const JsonCursor& root, const RopeDefaults& defaults, ModelConfig& config,
                   std::vector<std::string>& notes) {
  const JsonCursor scaling = scaling_object(root);
  const std::size_t share = rotary_dim_of(root, scaling, defaults, config.first_attention());
  RopeParameters rope{.theta = theta_of(root, scaling, first_key(root, {defaults.theta_key}), defaults.theta),
                      .rotary_dim = share + share % 2};
  for (const std::string_view key : {"rope_theta", "rotary_emb_base"})
    refuse_unless_same(root, key, defaults.theta_key, rope.theta);
  const RopeScalingContext context = scaling_context(root, defaults, rope, config);
  if (defaults.window_theta == 0) {
    refuse_per_layer_type(scaling);
    if (share % 2 != 0) complete_pair(scaling, rope, notes);
    if (const auto base = defaults.fixed_alpha ? alpha_base(scaling, rope.theta, config.head_dim()) : std::nullopt)
      rope.theta = *base;
    else
      rope.scaling = parse_rope_scaling(scaling, context);
    config.ropes = {rope};
    return;
  }
  refuse_passed_over(root, scaling);
  RopeParameters local{.theta = defaults.window_theta, .rotary_dim = rope.rotary_dim};
  const std::string_view key = defaults.window_theta_key;
  if (!key.empty() && root.has(key)) local.theta = root.at(key).positive_f32();
  if (defaults.proportional_share > 0) {
    rope.rotary_dim = head_dim_of(config, false);
    local.rotary_dim = head_dim_of(config, true);
    rope.scaling = {.type = RopeScaling::Type::kProportional, .share = defaults.proportional_share};
  }
  if (per_layer_type(scaling)) {
    if (scaling.has(kFull)) rope = parse_nested(scaling, kFull, rope.theta, context, rope.rotary_dim);
    local = parse_nested(scaling, kSliding, local.theta, context, local.rotary_dim);
  } else if (!scaling.is_null()) {
    rope.scaling = parse_rope_scaling(scaling, context);
  }
  set_window_rope(config, rope, local);
}

}  // namespace kvs::inline model
