#include "calibrate/full/fp8_sides.h"

#include <algorithm>

#include "turns/turns.h"

namespace kvs::inline calibrate {
namespace {

std::size_t heads_of(const ModelConfig& model, std::size_t layer) { return model.layer[layer].attention.kv_heads; }

Json largest_of(const std::vector<Fp8Scales>& layers) {
  Json all = Json::array();
  for (const Fp8Scales& layer : layers) all.push_back(layer.largest());
  return all;
}

}  // namespace

Fp8Sides::Fp8Sides(const ModelConfig& model, ExtremeRule rule, bool by_head)
    : model_(model), by_head_(by_head), layers_(model.cached_layers()) {
  for (const std::size_t layer : layers_) keys_.emplace_back(rule, by_head ? heads_of(model, layer) : 1);
  values_ = keys_;
}

void Fp8Sides::measure(StateSource& source, const std::function<void(std::size_t)>& done) {
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

Json Fp8Sides::scales(const Layers& layers) const {
  Json all = Json::array();
  for (const Fp8Scales& layer : layers) all.push_back(by_head_ ? Json(layer.scales()) : Json(layer.scales().front()));
  return all;
}

Json Fp8Sides::parameters() const {
  return {{"type", "fp8"}, {"scale_k", scales(keys_)}, {"scale_v", scales(values_)}};
}

Json Fp8Sides::largest() const { return {{"largest_k", largest_of(keys_)}, {"largest_v", largest_of(values_)}}; }

}  // namespace kvs::inline calibrate
