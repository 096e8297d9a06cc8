// SPDX-License-Identifier: Apache-2.0
#include "calibrate/full/kv_scales.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "turns/turns.h"

namespace kvs::inline calibrate {
namespace {

std::size_t heads_of(const ModelConfig& model, std::size_t layer) { return model.layer[layer].attention.kv_heads; }

double largest_number(const std::string& type) { return type == "nvfp4" ? 6.0 * 448 : 448; }

Json largest_of(const std::vector<SideScales>& layers) {
  Json all = Json::array();
  for (const SideScales& layer : layers) all.push_back(layer.largest());
  return all;
}

double mean_of(const Json& numbers) {
  double sum = 0;
  for (const Json& number : numbers) sum += number.get<double>();
  return numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
}

}  // namespace

ScaledTypes ScaledTypes::parse(std::string_view words) {
  const std::size_t slash = words.find('/');
  const std::string_view k = words.substr(0, slash);
  return {std::string(k), std::string(slash == std::string_view::npos ? k : words.substr(slash + 1))};
}

KvScales::KvScales(const ModelConfig& model, ScaledTypes types, ScaleSharing sharing)
    : model_(model), types_(std::move(types)), sharing_(sharing), layers_(model.cached_layers()) {
  if (sharing_ == ScaleSharing::kPair && types_.k != types_.v)
    throw Error(ErrorCode::kUsage, "--per", "found pair with two types, expected one type of keys and values");
  keys_.reserve(layers_.size());
  for (const std::size_t layer : layers_)
    keys_.emplace_back(sharing_ == ScaleSharing::kHead ? heads_of(model, layer) : 1);
  values_ = keys_;
}

void KvScales::measure(StateSource& source, const std::function<void(std::size_t)>& done) {
  const StateNeeds needs{.layers = layers_, .states = {StateKind::kKPost, StateKind::kV}};
  const auto add_layer = [&](const DocumentStates& states) {
    const auto n = static_cast<std::size_t>(std::ranges::lower_bound(layers_, states.layer) - layers_.begin());
    const auto add = [&](Layers& layers, StateKind kind) {
      layers[n].add(download(source.backend(), states[kind]), heads_of(model_, states.layer), states[kind].extent(2));
    };
    add(keys_, StateKind::kKPost);
    add(values_, StateKind::kV);
  };
  done(0);
  run_in_groups(
      0, source.documents(), source.visits_together(0),
      [&](std::size_t document) { source.visit(document, needs, add_layer); },
      [&](std::size_t document) { done(document + 1); });
}

std::vector<double> KvScales::limits(const Layers& side, std::size_t n, ScaleRule rule) const {
  std::vector<double> limits = side[n].limits(rule);
  if (sharing_ == ScaleSharing::kPair)
    limits.front() = std::max(keys_[n].limits(rule).front(), values_[n].limits(rule).front());
  return limits;
}

Json KvScales::scales(const Layers& side, const std::string& type, ScaleRule rule) const {
  Json all = Json::array();
  for (std::size_t n = 0; n < side.size(); ++n) {
    std::vector<double> scales = limits(side, n, rule);
    for (double& scale : scales)
      scale = std::max(scale / largest_number(type), double{std::numeric_limits<float>::epsilon()});
    all.push_back(sharing_ == ScaleSharing::kHead ? Json(scales) : Json(scales.front()));
  }
  return all;
}

Json KvScales::parameters(ScaleRule rule) const {
  Json parameters{{"scale_k", scales(keys_, types_.k, rule)}, {"scale_v", scales(values_, types_.v, rule)}};
  if (types_.k == types_.v)
    parameters["type"] = types_.k;
  else
    parameters.update(Json{{"type_k", types_.k}, {"type_v", types_.v}});
  return parameters;
}

Json KvScales::saturated(const Layers& side, ScaleRule rule) const {
  Json all = Json::array();
  for (std::size_t n = 0; n < side.size(); ++n) all.push_back(side[n].saturated(limits(side, n, rule)));
  return all;
}

Json KvScales::saturated(ScaleRule rule) const {
  return {{"saturated_k", saturated(keys_, rule)}, {"saturated_v", saturated(values_, rule)}};
}

double KvScales::share_saturated(ScaleRule rule) const {
  const Json shares = saturated(rule);
  return (mean_of(shares.at("saturated_k")) + mean_of(shares.at("saturated_v"))) / 2;
}

Json KvScales::largest() const { return {{"largest_k", largest_of(keys_)}, {"largest_v", largest_of(values_)}}; }

}  // namespace kvs::inline calibrate
