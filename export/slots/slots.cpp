// SPDX-License-Identifier: Apache-2.0
#include "export/slots/slots.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "export/slots/cell_rows.h"
#include "io/safetensors_writer.h"
#include "model/tensor_shape.h"

namespace kvs::inline exporting {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& where, const std::string& found,
                         const std::string& expected) {
  throw Error(code, where, "found " + found + ", expected " + expected);
}

std::string layer_part(const char* what, std::size_t layer) { return what + ('.' + std::to_string(layer)); }

/// @throws Error kConflict unless a state's cache has the model's layers
void check_layers(const StateCache& cache, const std::vector<std::size_t>& layers, const ModelConfig& model,
                  const std::string& where) {
  if (cache.layers.size() != layers.size())
    refuse(ErrorCode::kConflict, where, std::to_string(cache.layers.size()) + " layers",
           std::to_string(layers.size()) + " as the model has");
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const auto& [keys, values] = cache.layers[index];
    const std::string layer = where + ": layer " + std::to_string(layers[index]);
    const std::size_t expected = cell_values(model, layers[index]);
    for (const std::size_t found : {keys.values, values.values})
      if (found != expected)
        refuse(ErrorCode::kConflict, layer, std::to_string(found) + " values a cell",
               std::to_string(expected) + " as the model has");
    if (keys.type != values.type)
      refuse(ErrorCode::kUnsupported, layer,
             std::string(name_of(keys.type)) + " keys and " + std::string(name_of(values.type)) + " values",
             "one type");
  }
}

/// Returns the cells in the order of their positions. @throws Error kUnsupported unless these are consecutive
std::vector<std::size_t> cells_in_order(const StateCache& cache, const std::string& where) {
  std::vector<std::size_t> cells(cache.positions.size());
  std::iota(cells.begin(), cells.end(), 0);
  std::ranges::sort(cells, {}, [&](std::size_t cell) { return cache.positions[cell]; });
  std::int64_t expected = std::max(0, cache.positions[cells.front()]);
  for (const std::size_t cell : cells)
    if (const std::int64_t found = cache.positions[cell]; found != expected++)
      refuse(ErrorCode::kUnsupported, where + ": position", std::to_string(found),
             std::to_string(expected - 1) + ": cells must hold consecutive tokens");
  return cells;
}

PackedCache described(const StateCache& cache, const std::vector<std::size_t>& layers) {
  PackedCache packed;
  packed.streams = cache.streams;
  packed.stream = cache.stream;
  packed.sequence = cache.sequence;
  packed.transposed = cache.transposed;
  packed.first_position = static_cast<std::uint32_t>(*std::ranges::min_element(cache.positions));
  packed.tokens = static_cast<std::uint32_t>(cache.positions.size());
  for (std::size_t index = 0; index < layers.size(); ++index)
    packed.layers.push_back({layers[index], std::string(name_of(cache.layers[index].keys.type))});
  return packed;
}

/// Returns how llama.cpp orders a layer's keys (`keys`) or values.
CellOrder order_of(const ModelConfig& model, const PackedCache& cache, std::size_t layer, bool keys) {
  CellOrder order{.cells = cache.tokens, .values = cell_values(model, layer), .transposed = !keys && cache.transposed};
  if (keys && model.adjacent_pairs)
    order.pairs = {.head_dim = model.layer[layer].attention.head_dim, .rotary_dim = model.rotary_dim(layer)};
  return order;
}

DType type_of(const PackedCache& cache, const SlotGroup& group) {
  return *dtype_from_name(cache.layers[group.indices.front()].type);
}

/// Runs `act` with a group's codec. Its errors name neither the file nor the layer, and call what a file has an
/// argument.
template <class Act>
void with_codec(const std::string& where, const SlotGroup& group, const Act& act) try {
  act();
} catch (const Error& error) {
  const bool of_data = error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kData;
  if (!of_data) throw;
  throw Error(ErrorCode::kData, where + ": layer " + std::to_string(group.layers.front()), error.what());
}

/// @throws Error kData for a value that is not finite
void check_finite(std::span<const std::byte> rows, DType type, const std::string& where, std::size_t layer) {
  const std::uint32_t exponent = type == DType::kF32 ? 0x7f800000U : type == DType::kF16 ? 0x7c00U : 0x7f80U;
  const std::size_t size = type == DType::kF32 ? 4 : 2;
  for (std::size_t at = 0; at < rows.size(); at += size) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, rows.data() + at, size);
    if ((bits & exponent) == exponent)
      throw Error(ErrorCode::kData, where + ": layer " + std::to_string(layer),
                  "found NaN, infinity or a value beyond " + std::string(name_of(type)) + ", expected finite values");
  }
}

/// Returns the rows from token `coded` on.
PackedPart kept_part(std::span<const std::byte> rows, DType type, std::size_t values, std::size_t coded) {
  const std::span<const std::byte> kept = rows.subspan(coded * values * item_size(type));
  return {.type = std::string(safetensors_name(type)),
          .shape = {kept.size() / (values * item_size(type)), values},
          .bytes = {kept.begin(), kept.end()}};
}

kvs_codec_block block_of(const SlotGroup& group, const PackedCache& cache) {
  return {.layer = static_cast<std::uint32_t>(group.layers.front()),
          .tokens = static_cast<std::uint32_t>(group.coded),
          .first_position = cache.first_position,
          .coded_before = 0,
          .outliers_before = 0};
}

/// @throws Error kInput unless a slot's caches are those of a state of the model
void check_caches(const std::vector<PackedCache>& caches, const ModelConfig& model, const std::string& where) {
  if (caches.empty() || caches.size() > 2)
    refuse(ErrorCode::kInput, where + ": caches", std::to_string(caches.size()), "1 or 2");
  const auto layers = layers_of_caches(model, caches.size(), where);
  for (std::size_t n = 0; n < caches.size(); ++n) {
    const PackedCache& cache = caches[n];
    const std::string at = where + ": cache " + std::to_string(n);
    const auto bounded = [&](const char* field, std::uint64_t found, std::uint64_t least, std::uint64_t most) {
      if (found < least || found > most)
        refuse(ErrorCode::kInput, at + ": " + field, std::to_string(found),
               std::to_string(least) + " to " + std::to_string(most));
    };
    bounded("streams", cache.streams, 1, kMaxStreams);
    bounded("stream", cache.stream, 0, cache.streams - 1);
    bounded("tokens", cache.tokens, 1, kMaxPosition);
    bounded("first_position", cache.first_position, 0, kMaxPosition - cache.tokens);
    if (!std::ranges::equal(cache.layers, layers[n], {}, &PackedLayer::layer))
      refuse(ErrorCode::kConflict, at + ": layers", std::to_string(cache.layers.size()),
             "the model's " + std::to_string(layers[n].size()));
    for (const PackedLayer& layer : cache.layers)
      if (const auto type = dtype_from_name(layer.type); !type || *type == DType::kF64)
        refuse(ErrorCode::kInput, at + ": type of layer " + std::to_string(layer.layer), layer.type,
               "f32, f16 or bf16");
  }
}

/// Returns a part. @throws Error kInput if it is missing or has another type or shape
const PackedPart& part_of(const PackedSlot& slot, const std::string& name, std::string_view type,
                          const std::vector<std::uint64_t>& shape, const std::string& where) {
  const auto found = slot.parts.find(name);
  const std::string at = where + ": tensor " + name;
  if (found == slot.parts.end()) refuse(ErrorCode::kInput, at, "none", "one of " + std::string(type));
  const PackedPart& part = found->second;
  if (part.type != type || (!shape.empty() && part.shape != shape))
    refuse(ErrorCode::kInput, at, part.type + ' ' + shape_text(part.shape),
           std::string(type) + (shape.empty() ? "" : ' ' + shape_text(shape)));
  return part;
}

/// @throws Error kInput for a part that no group has
void check_parts(const PackedSlot& slot, const std::vector<SlotGroup>& groups, const std::string& where) {
  std::set<std::string> expected;
  for (const SlotGroup& group : groups) {
    if (group.coded > 0) expected.insert(group.stream_name());
    for (const std::size_t layer : group.layers)
      expected.insert({layer_part("keys", layer), layer_part("values", layer)});
  }
  for (const auto& [name, part] : slot.parts)
    if (!expected.contains(name)) refuse(ErrorCode::kInput, where + ": tensor " + name, "one", "none");
}

/// Decodes the layers of a group.
class GroupReader {
 public:
  GroupReader(const PackedSlot& slot, const SlotCoder& coder, const std::string& where)
      : slot_(slot), coder_(coder), where_(where), ops_(coder.threads), inputs_(coder, slot.tokens, where) {}

  std::vector<LayerRows> read(const SlotGroup& group) {
    const PackedCache& cache = slot_.head.caches[group.cache];
    const DType type = type_of(cache, group);
    const std::span<const std::byte> stream = checked_stream(group, cache);  // before the memory of its tokens is taken
    std::vector<LayerRows> rows;
    for (const std::size_t layer : group.layers)
      rows.push_back({.keys = kept(layer, "keys", type, cache.tokens, group.coded),
                      .values = kept(layer, "values", type, cache.tokens, group.coded)});
    if (group.coded == 0) return rows;
    const kvs_codec_inputs* const inputs = inputs_.of(*group.codec, cache, group.coded);
    with_codec(where_, group, [&] {
      const auto states = states_of(group, coder_.model, type, rows);
      group.codec->decode(ops_, coder_.threads, stream, 0, group.coded, {states, inputs});
    });
    for (std::size_t n = 0; n < rows.size(); ++n)
      for (const auto* const of_layer : {&rows[n].keys, &rows[n].values})
        check_finite(*of_layer, type, where_, group.layers[n]);
    return rows;
  }

 private:
  /// Returns a group's stream. @throws Error unless it has the tokens that the slot states
  std::span<const std::byte> checked_stream(const SlotGroup& group, const PackedCache& cache) const {
    if (group.coded == 0) return {};
    const PackedPart& stream = part_of(slot_, group.stream_name(), "U8", {}, where_);
    with_codec(where_, group, [&] {
      const kvs_codec_stream content = group.codec->inspect(stream.bytes);
      check_field("tokens", content.tokens, group.coded);
      check_field("first position", content.first_position, cache.first_position);
    });
    return stream.bytes;
  }

  /// Returns rows of all tokens, of which those from `coded` on are read.
  std::vector<std::byte> kept(std::size_t layer, const char* what, DType type, std::size_t tokens,
                              std::size_t coded) const {
    const std::size_t values = cell_values(coder_.model, layer);
    const PackedPart& part =
        part_of(slot_, layer_part(what, layer), safetensors_name(type), {tokens - coded, values}, where_);
    std::vector<std::byte> rows(tokens * values * item_size(type));
    std::ranges::copy(part.bytes, rows.begin() + static_cast<std::ptrdiff_t>(rows.size() - part.bytes.size()));
    return rows;
  }

  const PackedSlot& slot_;
  const SlotCoder& coder_;
  const std::string& where_;
  CpuCoding ops_;
  SlotInputs inputs_;
};

}  // namespace

PackedSlot pack_state(const StateFile& state, const SlotCoder& coder, const std::string& where) {
  PackedSlot slot;
  slot.head.state_version = kStateVersion;
  slot.head.tensors_sha256 = coder.config.digest();
  slot.head.model_sha256 = coder.model_sha256;
  slot.tokens = state.tokens;
  const auto layers = layers_of_caches(coder.model, state.caches.size(), where);
  std::vector<std::vector<std::size_t>> cells;
  for (std::size_t cache = 0; cache < layers.size(); ++cache) {
    check_layers(state.caches[cache], layers[cache], coder.model, where);
    cells.push_back(cells_in_order(state.caches[cache], where));
    slot.head.caches.push_back(described(state.caches[cache], layers[cache]));
  }
  check_caches(slot.head.caches, coder.model, where);
  CpuCoding ops(coder.threads);
  SlotInputs inputs(coder, slot.tokens, where);
  const std::vector<SlotGroup> groups = groups_of(coder, slot.head.caches, where);
  std::size_t done = 0;
  for (const SlotGroup& group : groups) {
    const PackedCache& cache = slot.head.caches[group.cache];
    const DType type = type_of(cache, group);
    std::vector<LayerRows> rows;
    for (std::size_t n = 0; n < group.layers.size(); ++n) {
      const auto& [keys, values] = state.caches[group.cache].layers[group.indices[n]];
      const auto order = [&](bool of_keys) { return order_of(coder.model, cache, group.layers[n], of_keys); };
      rows.push_back({.keys = gathered_rows(keys.bytes, type, order(true), cells[group.cache]),
                      .values = gathered_rows(values.bytes, type, order(false), cells[group.cache])});
      for (const auto* const of_layer : {&rows[n].keys, &rows[n].values})
        check_finite(*of_layer, type, where, group.layers[n]);
      const std::size_t of_cell = cell_values(coder.model, group.layers[n]);
      slot.parts[layer_part("keys", group.layers[n])] = kept_part(rows[n].keys, type, of_cell, group.coded);
      slot.parts[layer_part("values", group.layers[n])] = kept_part(rows[n].values, type, of_cell, group.coded);
    }
    if (group.coded > 0) {
      const kvs_codec_block block = block_of(group, cache);
      const kvs_codec_inputs* const of_tokens = inputs.of(*group.codec, cache, group.coded);
      std::vector<std::byte> stream(group.codec->bound(block));
      with_codec(where, group, [&] {
        const auto states = states_of(group, coder.model, type, rows);
        stream.resize(group.codec->encode(ops, coder.threads, block, {states, of_tokens}, stream));
      });
      const std::size_t bytes = stream.size();
      slot.parts[group.stream_name()] = {.type = "U8", .shape = {bytes}, .bytes = std::move(stream)};
    }
    if (coder.progress) coder.progress(++done, groups.size());
  }
  return slot;
}

UnpackedState unpack_state(const PackedSlot& slot, const SlotCoder& coder, const std::string& where) {
  if (slot.head.tensors_sha256 != coder.config.digest())
    refuse(ErrorCode::kConflict, where + ": /tensors_sha256", slot.head.tensors_sha256,
           coder.config.digest() + " (another config?)");
  check_caches(slot.head.caches, coder.model, where);
  const std::vector<SlotGroup> groups = groups_of(coder, slot.head.caches, where);
  check_parts(slot, groups, where);
  if (slot.head.model_sha256 != coder.model_sha256 && std::ranges::any_of(groups, &SlotGroup::is_predicted))
    refuse(ErrorCode::kConflict, where + ": /model_sha256", slot.head.model_sha256,
           coder.model_sha256 + ": rows are predicted from the embeddings of the model that packed them");
  UnpackedState unpacked;
  unpacked.state.tokens = slot.tokens;
  for (const PackedCache& cache : slot.head.caches) {
    StateCache& state = unpacked.state.caches.emplace_back();
    state.streams = cache.streams;
    state.stream = cache.stream;
    state.sequence = cache.sequence;
    state.transposed = cache.transposed;
    state.positions.resize(cache.tokens);
    std::iota(state.positions.begin(), state.positions.end(), static_cast<std::int32_t>(cache.first_position));
    state.layers.resize(cache.layers.size());
  }
  GroupReader reader(slot, coder, where);
  std::size_t done = 0;
  for (const SlotGroup& group : groups) {
    const PackedCache& cache = slot.head.caches[group.cache];
    const DType type = type_of(cache, group);
    const std::vector<LayerRows> rows = reader.read(group);
    for (std::size_t n = 0; n < group.layers.size(); ++n) {
      const auto stored = [&](const std::vector<std::byte>& of_layer, bool keys) {
        unpacked.rows.push_back(stored_rows(of_layer, type, order_of(coder.model, cache, group.layers[n], keys)));
        return StateRows{
            .type = type, .values = cell_values(coder.model, group.layers[n]), .bytes = unpacked.rows.back()};
      };
      unpacked.state.caches[group.cache].layers[group.indices[n]] = {.keys = stored(rows[n].keys, true),
                                                                     .values = stored(rows[n].values, false)};
    }
    if (coder.progress) coder.progress(++done, groups.size());
  }
  return unpacked;
}

}  // namespace kvs::inline exporting
