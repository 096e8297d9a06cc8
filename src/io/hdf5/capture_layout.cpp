// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/checked.h"
#include "core/error.h"
#include "core/utf8.h"

namespace kvs::inline io {
namespace {

constexpr std::uint64_t kMaxHeads = 1U << 16, kMaxHeadDim = 1U << 16;
constexpr std::int64_t kMaxLayer = 99'999;
constexpr std::uint64_t kMaxRopeKinds = 8;
/// No window has more than 2^40 tokens. Products with heads and head_dim stay far from overflow.
constexpr std::uint64_t kMaxTokens = 1ULL << 40;

[[noreturn]] void fail(std::string_view where, std::string_view attribute, const std::string& problem) {
  throw Error(ErrorCode::kInput, std::string(where) + ": " + std::string(attribute), problem);
}

void check_text(std::string_view where, std::string_view attribute, std::string_view text) {
  // HDF5 ends a string at its first NUL. The position of `complete` is found by bytes that UTF-8 never contains.
  if (text.size() > kMaxTextBytes)
    fail(where, attribute, "found " + std::to_string(text.size()) + " bytes, expected at most 65536");
  if (find_invalid_utf8(text) != std::string_view::npos || text.find('\0') != std::string_view::npos)
    fail(where, attribute, "expected UTF-8 text without NUL");
}

void check_range(std::string_view where, std::string_view attribute, std::uint64_t value, std::uint64_t least,
                 std::uint64_t most) {
  if (value < least || value > most)
    fail(where, attribute,
         "found " + std::to_string(value) + ", expected " + std::to_string(least) + " to " + std::to_string(most));
}

bool has_cache(const CaptureHeader& header, std::size_t layer) {
  return !std::ranges::binary_search(header.layers_without_cache, static_cast<std::int32_t>(layer));
}

/// Checks that a list has a value for each of `count` places, and each value that is used.
template <class IsUsed>
void check_sizes(std::string_view where, std::string_view attribute, const LayerSizes& sizes, std::size_t count,
                 std::uint64_t least, std::uint64_t most, IsUsed is_used) {
  if (sizes.is_list() && sizes.values().size() != count)
    fail(where, attribute,
         "found " + std::to_string(sizes.values().size()) + " values, expected one or " + std::to_string(count));
  for (std::size_t n = 0; n < sizes.values().size(); ++n)
    if (!sizes.is_list() || is_used(n)) check_range(where, attribute, sizes.values()[n], least, most);
}

void check_layers(const CaptureHeader& header, std::string_view where) {
  check_range(where, "model_layers", header.model_layers, 1, static_cast<std::uint64_t>(kMaxLayer) + 1);
  const auto check_ascending = [&](std::string_view attribute, const std::vector<std::int32_t>& layers) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (layers[i] < 0 || static_cast<std::uint32_t>(layers[i]) >= header.model_layers ||
          (i > 0 && layers[i] <= layers[i - 1]))
        fail(where, attribute, "found " + std::to_string(layers[i]) + ", expected ascending layer numbers");
  };
  if (header.layers.empty()) fail(where, "layers", "found none, expected at least one layer");
  check_ascending("layers", header.layers);
  check_ascending("layers_without_cache", header.layers_without_cache);
  for (const std::int32_t layer : header.layers)
    if (!has_cache(header, static_cast<std::size_t>(layer)))
      fail(where, "layers", "found " + std::to_string(layer) + ", which is one of layers_without_cache");
  const auto with_cache = [&](std::size_t layer) { return has_cache(header, layer); };
  check_sizes(where, "query_heads", header.query_heads, header.model_layers, 1, kMaxHeads, with_cache);
  check_sizes(where, "kv_heads", header.kv_heads, header.model_layers, 1, kMaxHeads, with_cache);
  check_sizes(where, "head_dim", header.head_dim, header.model_layers, 2, kMaxHeadDim, with_cache);
}

void check_rotary_dim(const CaptureHeader& header, std::string_view where) {
  check_sizes(where, "rotary_dim", header.rotary_dim, header.rope_factors.size(), 2, header.head_dim.most(),
              [](std::size_t) { return true; });
  for (const std::size_t channels : header.rotary_dim.values())
    if (channels % 2 != 0) fail(where, "rotary_dim", "expected an even number");
  for (std::size_t layer = 0; layer < header.model_layers; ++layer)
    if (has_cache(header, layer))
      check_range(where, "rotary_dim", header.rotary_dim.of(static_cast<std::size_t>(header.rope_kinds[layer])), 2,
                  header.head_dim.of(layer));
}

void check_rope(const CaptureHeader& header, std::string_view where) {
  if (!std::isfinite(header.rope_theta)) fail(where, "rope_theta", "expected a finite number");
  const std::size_t kinds = header.rope_factors.size();
  check_range(where, "rope_factors", kinds, 1, kMaxRopeKinds);
  for (const double factor : header.rope_factors)
    if (!std::isfinite(factor) || factor <= 0) fail(where, "rope_factors", "expected finite numbers above 0");
  if (header.rope_kinds.size() != header.model_layers)
    fail(where, "rope_kinds",
         "found " + std::to_string(header.rope_kinds.size()) + " values, expected one per layer of the model, " +
             std::to_string(header.model_layers));
  for (const std::int32_t kind : header.rope_kinds)
    if (kind < 0 || static_cast<std::size_t>(kind) >= kinds)
      fail(where, "rope_kinds", "found " + std::to_string(kind) + ", expected 0 to " + std::to_string(kinds - 1));
  check_rotary_dim(header, where);
  std::size_t frequencies = 0;
  for (std::size_t kind = 0; kind < kinds; ++kind) frequencies += header.rotary_dim.of(kind) / 2;
  if (header.rope_frequencies.size() != frequencies)
    fail(where, "rope_frequencies",
         "found " + std::to_string(header.rope_frequencies.size()) +
             " values, expected kinds x rotary_dim / 2 = " + std::to_string(frequencies));
  for (const double frequency : header.rope_frequencies)
    if (!std::isfinite(frequency)) fail(where, "rope_frequencies", "expected finite numbers");
}

void check_header(const CaptureHeader& header, std::string_view where) {
  check_text(where, "model_name", header.model_name);
  check_text(where, "model_sha256", header.model_sha256);
  check_text(where, "architecture", header.architecture);
  check_text(where, "rope_scaling", header.rope_scaling);
  check_text(where, "rope_parameters", header.rope_parameters);
  check_layers(header, where);
  check_range(where, "tokens", header.tokens, 2, kMaxTokens);
  check_range(where, "documents", header.documents, 1, kMaxCaptureDatasets);
  if (header.store == DType::kF64) fail(where, "dtype", "found f64, expected f32, f16 or bf16");
  if (header.states.empty()) fail(where, "states", "found none, expected at least one kind of states");
  check_rope(header, where);
}

CaptureType capture_type(DType store) noexcept {
  if (store == DType::kF16) return CaptureType::kF16;
  return store == DType::kBF16 ? CaptureType::kBF16 : CaptureType::kF32;
}

std::vector<std::int32_t> layer_list(const JsonCursor& array) {
  std::vector<std::int32_t> layers(array.array_size());
  for (std::size_t i = 0; i < layers.size(); ++i)
    layers[i] = static_cast<std::int32_t>(array.at(i).integer(0, kMaxLayer));
  return layers;
}

std::vector<double> reals(const JsonCursor& array) {
  std::vector<double> values(array.array_size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = array.at(i).real();
  return values;
}

}  // namespace

std::string document_group(std::uint64_t document) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "/doc/%05llu", static_cast<unsigned long long>(document));
  return text.data();
}

std::string layer_group(std::int32_t layer) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "layer/%02d", layer);
  return text.data();
}

CaptureLayout layout_of(const CaptureHeader& header, std::string_view where) {
  check_header(header, where);
  const std::uint64_t per_document = 2 + header.layers.size() * header.states.size();
  // documents is at most 2^20 and layers is below 2^17, so this product fits.
  if (per_document * header.documents > kMaxCaptureDatasets)
    throw Error(ErrorCode::kUnsupported, where,
                "found " + std::to_string(per_document * header.documents) + " datasets, expected at most " +
                    std::to_string(kMaxCaptureDatasets) + " in one capture");
  CaptureLayout layout;
  layout.datasets.push_back({"tokens", CaptureType::kInt32, {header.tokens}, 4 * header.tokens});
  layout.datasets.push_back({"nll", CaptureType::kF32, {header.tokens - 1}, 4 * (header.tokens - 1)});
  for (const std::int32_t layer : header.layers)
    for (const StateKind kind : header.states) {
      const auto number = static_cast<std::size_t>(layer);
      const std::uint64_t heads = header.heads_of(number, kind), head_dim = header.head_dim.of(number);
      const auto values = checked_multiply(heads * head_dim, header.tokens);
      const auto bytes = values ? checked_multiply(*values, item_size(header.store)) : std::nullopt;
      if (!bytes) fail(where, "tokens", "heads, tokens and head_dim overflow");
      layout.datasets.push_back({layer_group(layer) + "/" + std::string(name_of(kind)),
                                 capture_type(header.store),
                                 {heads, header.tokens, head_dim},
                                 *bytes});
    }
  for (const CaptureDataset& dataset : layout.datasets) {
    const auto sum = checked_add(layout.document_bytes, dataset.bytes);
    if (!sum) fail(where, "tokens", "the size of a document overflows");
    layout.document_bytes = *sum;
  }
  if (!checked_multiply(layout.document_bytes, header.documents)) fail(where, "documents", "the size overflows");
  return layout;
}

std::optional<std::size_t> dataset_of(const CaptureHeader& header, std::int32_t layer, StateKind kind) {
  const auto layer_at = std::ranges::lower_bound(header.layers, layer);
  const auto kind_at = header.states.find(kind);
  if (layer_at == header.layers.end() || *layer_at != layer || kind_at == header.states.end()) return std::nullopt;
  const auto row = static_cast<std::size_t>(layer_at - header.layers.begin());
  return 2 + row * header.states.size() + static_cast<std::size_t>(std::distance(header.states.begin(), kind_at));
}

std::size_t CaptureHeader::largest_state() const noexcept {
  std::size_t most = 0;
  for (const std::int32_t layer : layers)
    for (const StateKind kind : states) {
      const auto [heads, of_document, channels] = shape_of(static_cast<std::size_t>(layer), kind);
      most = std::max(most, heads * of_document * channels);
    }
  return most;
}

std::uint64_t CaptureHeader::values() const noexcept {
  std::uint64_t sum = 0;
  for (const std::int32_t layer : layers)
    for (const StateKind kind : states) {
      const auto [heads, of_document, channels] = shape_of(static_cast<std::size_t>(layer), kind);
      sum += std::uint64_t{heads} * of_document * channels;
    }
  return sum;
}

std::int64_t capture_version(const CaptureHeader& header) noexcept {
  const bool differ = header.query_heads.is_list() || header.kv_heads.is_list() || header.head_dim.is_list() ||
                      header.rotary_dim.is_list() || !header.layers_without_cache.empty();
  return differ ? kCaptureVersion : 1;
}

std::string position_text(const CaptureHeader& header, std::size_t layer, std::size_t index) {
  const std::size_t token = index / header.head_dim.of(layer);
  return "head " + std::to_string(token / header.tokens) + ", token " + std::to_string(token % header.tokens);
}

std::string checksum_text(std::uint32_t checksum) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08x", checksum);
  return text.data();
}

Json header_to_json(const CaptureHeader& header) {
  Json states = Json::array();
  for (const StateKind kind : header.states) states.push_back(name_of(kind));
  Json object{{"model_name", header.model_name},
              {"model_sha256", header.model_sha256},
              {"architecture", header.architecture},
              {"model_layers", header.model_layers},
              {"layers", header.layers},
              {"query_heads", header.query_heads.json()},
              {"kv_heads", header.kv_heads.json()},
              {"head_dim", header.head_dim.json()},
              {"rope_theta", header.rope_theta},
              {"rope_scaling", header.rope_scaling},
              {"rope_parameters", header.rope_parameters},
              {"rotary_dim", header.rotary_dim.json()},
              {"rope_kinds", header.rope_kinds},
              {"rope_factors", header.rope_factors},
              {"rope_frequencies", header.rope_frequencies},
              {"dtype", name_of(header.store)},
              {"states", std::move(states)},
              {"tokens", header.tokens},
              {"documents", header.documents}};
  if (!header.layers_without_cache.empty()) object["layers_without_cache"] = header.layers_without_cache;
  return object;
}

CaptureHeader header_from_json(const JsonCursor& object) {
  CaptureHeader header;
  header.model_name = object.at("model_name").string();
  header.model_sha256 = object.at("model_sha256").string();
  header.architecture = object.at("architecture").string();
  header.rope_scaling = object.at("rope_scaling").string();
  header.model_layers = static_cast<std::uint32_t>(object.at("model_layers").unsigned_integer(kMaxLayer + 1));
  header.query_heads = LayerSizes::from_json(object.at("query_heads"), kMaxHeads);
  header.kv_heads = LayerSizes::from_json(object.at("kv_heads"), kMaxHeads);
  header.head_dim = LayerSizes::from_json(object.at("head_dim"), kMaxHeadDim);
  header.rope_theta = object.at("rope_theta").real();
  header.rope_parameters = object.at("rope_parameters").string();
  header.rotary_dim = LayerSizes::from_json(object.at("rotary_dim"), kMaxHeadDim);
  header.rope_factors = reals(object.at("rope_factors"));
  header.rope_frequencies = reals(object.at("rope_frequencies"));
  const JsonCursor kinds = object.at("rope_kinds");
  for (std::size_t i = 0; i < kinds.array_size(); ++i)
    header.rope_kinds.push_back(static_cast<std::int32_t>(kinds.at(i).integer(0, kMaxRopeKinds)));
  header.tokens = object.at("tokens").unsigned_integer(kMaxTokens);
  header.documents = object.at("documents").unsigned_integer(kMaxCaptureDatasets);
  const JsonCursor layers = object.at("layers"), states = object.at("states"), store = object.at("dtype");
  header.layers = layer_list(layers);
  if (object.has("layers_without_cache")) header.layers_without_cache = layer_list(object.at("layers_without_cache"));
  for (std::size_t i = 0; i < states.array_size(); ++i) {
    const auto kind = state_kind_from_name(states.at(i).string());
    if (!kind || !header.states.insert(*kind).second) states.at(i).fail("q_pre, k_pre, k_post or v, each once");
  }
  const auto type = dtype_from_name(store.string());
  if (!type || *type == DType::kF64) store.fail("f32, f16 or bf16");
  header.store = *type;
  return header;
}

std::vector<FileRange> metadata_ranges(const CaptureIndex& index, std::string_view where) {
  std::vector<FileRange> data(index.offsets.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::size_t dataset = i % index.bytes.size();
    const auto end = checked_add(index.offsets[i], index.bytes[dataset]);
    if (!end || *end > index.file_bytes)
      throw Error(ErrorCode::kInput,
                  std::string(where) + ": " + document_group(i / index.bytes.size()) + "/" + index.names[dataset],
                  "found " + std::to_string(index.bytes[dataset]) + " bytes at offset " +
                      std::to_string(index.offsets[i]) + ", expected them inside the file of " +
                      std::to_string(index.file_bytes) + " bytes");
    data[i] = {index.offsets[i], *end};
  }
  std::ranges::sort(data);
  std::vector<FileRange> gaps;
  std::uint64_t at = 0;
  for (const auto& [first, last] : data) {
    if (first < at) throw Error(ErrorCode::kInput, where, "two datasets overlap at offset " + std::to_string(first));
    if (first > at) gaps.push_back({at, first});
    at = last;
  }
  if (at < index.file_bytes) gaps.push_back({at, index.file_bytes});
  return gaps;
}

}  // namespace kvs::inline io
