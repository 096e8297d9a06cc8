#include "model/families/recurrence.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {
namespace {

constexpr std::uint64_t kMaxTaps = 64;

std::size_t kind_of(const JsonCursor& type, std::span<const std::string_view> kinds) {
  const auto found = std::ranges::find(kinds, std::string_view(type.string()));
  if (found != kinds.end()) return static_cast<std::size_t>(found - kinds.begin());
  const std::vector<std::string> supported(kinds.begin(), kinds.end());
  throw Error(ErrorCode::kUnsupported, type.place(),
              "found " + describe_json(type.value()) + ", supported are: " + listed(supported));
}

}  // namespace

std::vector<std::size_t> read_layer_types(const JsonCursor& root, std::size_t layers,
                                          std::span<const std::string_view> kinds) {
  std::vector<std::size_t> types;
  if (!root.has("layer_types")) return types;
  const JsonCursor list = root.at("layer_types");
  if (list.array_size() != layers) list.fail("one type for each of " + std::to_string(layers) + " layers");
  for (std::size_t layer = 0; layer < layers; ++layer) types.push_back(kind_of(list.at(layer), kinds));
  return types;
}

void read_delta_net(const JsonCursor& root, std::vector<LayerConfig>& layers) {
  static constexpr std::array<std::string_view, 4> kKinds{"full_attention", "attention", "linear_attention", "mamba"};
  const DeltaNetConfig block{.key_heads = hf_count(root, "linear_num_key_heads", kMaxHeads, 16),
                             .value_heads = hf_count(root, "linear_num_value_heads", kMaxHeads, 32),
                             .key_head_dim = hf_count(root, "linear_key_head_dim", kMaxWidth, 128),
                             .value_head_dim = hf_count(root, "linear_value_head_dim", kMaxWidth, 128),
                             .kernel = hf_count(root, "linear_conv_kernel_dim", kMaxTaps, 4)};
  if (block.value_heads % block.key_heads != 0)
    root.at("linear_num_value_heads").fail("a multiple of linear_num_key_heads " + std::to_string(block.key_heads));
  const std::vector<std::size_t> types = read_layer_types(root, layers.size(), kKinds);
  const std::size_t interval = hf_count(root, "full_attention_interval", kMaxLayers, 4);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const bool linear = types.empty() ? (layer + 1) % interval != 0 : types[layer] >= 2;
    if (!linear) continue;
    layers[layer].attention = {};
    layers[layer].delta_net = block;
  }
}

}  // namespace kvs::inline model
