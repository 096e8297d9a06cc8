#include "calibrate/full/fp8_sides.h"

namespace kvs::inline calibrate {
namespace {

Json largest_of(const std::vector<Fp8Scales>& layers) {
  Json all = Json::array();
  for (const Fp8Scales& layer : layers) all.push_back(layer.largest());
  return all;
}

}  // namespace

Fp8Sides::Fp8Sides(const ModelConfig& model, ExtremeRule rule, bool by_head)
    : kv_heads_(model.kv_heads()),
      head_dim_(model.head_dim()),
      by_head_(by_head),
      keys_(model.layers(), {rule, by_head ? model.kv_heads() : 1}),
      values_(keys_) {}

void Fp8Sides::measure(StateSource& source, const std::function<void(std::size_t)>& done) {
  StateNeeds needs{.layers = {}, .states = {StateKind::kKPost, StateKind::kV}};
  for (std::size_t layer = 0; layer < keys_.size(); ++layer) needs.layers.push_back(layer);
  for (std::size_t document = 0; document < source.documents(); ++document) {
    done(document);
    source.visit(document, needs, [&](const DocumentStates& states) {
      const auto add = [&](Layers& layers, StateKind kind) {
        layers[states.layer].add(download(source.backend(), states[kind]), kv_heads_, head_dim_);
      };
      add(keys_, StateKind::kKPost);
      add(values_, StateKind::kV);
    });
  }
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
