// SPDX-License-Identifier: Apache-2.0
#include "states/capture_run.h"

#include <algorithm>

#include "core/error.h"
#include "model/architecture.h"
#include "model/model_json.h"
#include "model/rope_json.h"

namespace kvs::inline states {
namespace {

/// Writes the states of a document that the header names as the forward pass produces them.
class CaptureHook final : public StateHook {
 public:
  CaptureHook(const CaptureHeader& header, CaptureStream& stream, std::uint64_t document)
      : header_(header), stream_(stream), document_(document) {}

  void before_rope(LayerStates& states) override {
    write(states.layer, StateKind::kQPre, states.q);
    write(states.layer, StateKind::kKPre, states.k);
    write(states.layer, StateKind::kV, states.v);
  }
  void after_rope(LayerStates& states) override { write(states.layer, StateKind::kKPost, states.k); }

 private:
  void write(std::size_t index, StateKind kind, BackendView<float, 4> states) {
    const auto layer = static_cast<std::int32_t>(index);
    if (!header_.states.contains(kind) || !std::ranges::binary_search(header_.layers, layer)) return;
    stream_.write_states(document_, layer, kind, states.slice(0));
  }

  const CaptureHeader& header_;
  CaptureStream& stream_;
  std::uint64_t document_;
};

}  // namespace

CaptureHeader capture_header(const ModelConfig& model, const std::string& model_sha256,
                             std::span<const std::size_t> layers, const StateSet& states, DType store,
                             std::uint64_t tokens, std::uint64_t documents) {
  CaptureHeader header;
  header.model_name = model.name;
  header.model_sha256 = model_sha256;
  header.architecture = model.architecture;
  header.model_layers = static_cast<std::uint32_t>(model.layers());
  for (const std::size_t layer : layers) header.layers.push_back(static_cast<std::int32_t>(layer));
  header.query_heads = sizes_of(model, &AttentionConfig::query_heads);
  header.kv_heads = sizes_of(model, &AttentionConfig::kv_heads);
  header.head_dim = sizes_of(model, &AttentionConfig::head_dim);
  for (const std::size_t layer : model.layers_without_cache())
    header.layers_without_cache.push_back(static_cast<std::int32_t>(layer));
  const RopeParameters& rope = model.ropes.front();
  header.rope_theta = rope.theta;
  header.rope_scaling = dump_json(rope_scaling_json(rope.scaling), -1);
  header.rope_parameters = dump_json(ropes_json(model.ropes), -1);
  header.rotary_dim = rotary_sizes_of(model);
  for (std::size_t layer = 0; layer < model.layers(); ++layer)
    header.rope_kinds.push_back(static_cast<std::int32_t>(model.layer[layer].attention.rope));
  for (const RopeParameters& kind : model.ropes) {
    const RopeAngles angles = rope_angles(kind, tokens);
    header.rope_frequencies.insert(header.rope_frequencies.end(), angles.frequencies.begin(), angles.frequencies.end());
    header.rope_factors.push_back(angles.factor);
  }
  header.store = store;
  header.states = states;
  header.tokens = tokens;
  header.documents = documents;
  return header;
}

ModelConfig model_config_of(const CaptureHeader& header) {
  ModelConfig config;
  config.name = header.model_name;
  config.architecture = header.architecture;
  config.layer.resize(header.model_layers);
  const Architecture* const row = find_architecture_named(header.architecture);
  for (std::size_t layer = 0; layer < config.layers(); ++layer)
    config.layer[layer].attention = {.query_heads = header.query_heads.of(layer),
                                     .kv_heads = header.kv_heads.of(layer),
                                     .head_dim = header.head_dim.of(layer),
                                     .sinks = row != nullptr && row->keys.sinks};
  for (const std::int32_t layer : header.layers_without_cache)
    config.layer.at(static_cast<std::size_t>(layer)).attention = {};
  if (row != nullptr) config.arithmetic.norms_after_rope = row->arithmetic.norms_after_rope;
  const std::string where = "capture: /@rope_parameters";
  const Json ropes = parse_json(header.rope_parameters, where);
  config.ropes = ropes_from_json(JsonCursor(ropes, where));
  if (config.ropes.size() != header.rope_factors.size() || rotary_sizes_of(config) != header.rotary_dim)
    throw Error(ErrorCode::kInput, where, "found another number of kinds or of rotated channels than the frequencies'");
  for (std::size_t layer = 0; config.ropes.size() > 1 && layer < config.layers(); ++layer)
    config.layer[layer].attention.rope = static_cast<std::size_t>(header.rope_kinds.at(layer));
  return config;
}

std::vector<RopeAngles> rope_angles_of(const CaptureHeader& header) {
  std::vector<RopeAngles> kinds;
  auto first = header.rope_frequencies.begin();
  for (std::size_t kind = 0; kind < header.rope_factors.size(); ++kind) {
    const auto last = first + static_cast<std::ptrdiff_t>(header.rotary_dim.of(kind) / 2);
    kinds.push_back({{first, last}, header.rope_factors[kind]});
    first = last;
  }
  return kinds;
}

std::uint64_t capture_bytes(const CaptureHeader& header) noexcept {
  const std::uint64_t states = header.values() * item_size(header.store);
  return header.documents * (states + header.tokens * sizeof(std::int32_t) + (header.tokens - 1) * sizeof(float));
}

void capture_document(Decoder& decoder, std::uint64_t document, std::span<const std::int32_t> tokens,
                      const CaptureHeader& header, CaptureStream& stream) {
  stream.begin_document(document, tokens);
  CaptureHook hook(header, stream, document);
  stream.write_nll(document, document_nll(decoder, tokens, &hook));
  stream.store_document(document);
}

}  // namespace kvs::inline states
