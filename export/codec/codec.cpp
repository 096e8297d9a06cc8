// SPDX-License-Identifier: Apache-2.0
#include "kvspectrum/codec.h"

#include <omp.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <new>
#include <string>

#include "calibrate/config/config.h"
#include "calibrate/transform/config.h"
#include "core/error.h"
#include "export/codec/row_codec.h"
#include "export/codec/storage_codec.h"
#include "results/head.h"

struct kvs_codec {
  int threads = 1;
  std::map<std::uint32_t, std::shared_ptr<const kvs::GroupCodec>> groups = {};  // [layer]

  const kvs::GroupCodec& group(std::uint32_t layer) const {
    const auto found = groups.find(layer);
    if (found == groups.end())
      throw kvs::Error(kvs::ErrorCode::kUsage, "layer",
                       "found " + std::to_string(layer) + ", expected one that the config codes");
    return *found->second;
  }
  /// @throws Error kData for a stream without a layer of the config
  const kvs::GroupCodec& of_stream(std::span<const std::byte> stream) const {
    const std::uint32_t layer = kvs::read_head(stream).layer;
    const auto found = groups.find(layer);
    if (found == groups.end())
      throw kvs::Error(kvs::ErrorCode::kData, "stream: layer",
                       "found " + std::to_string(layer) + ", expected one that the config codes");
    return *found->second;
  }
};

namespace {

using kvs::Error;
using kvs::ErrorCode;
namespace fs = std::filesystem;

std::string& last_error() {
  thread_local std::string text;
  return text;
}

kvs_codec_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return KVS_CODEC_ARGUMENT;
    case ErrorCode::kInput:
    case ErrorCode::kUnsupported:
      return KVS_CODEC_CONFIG;
    case ErrorCode::kConflict:
      return KVS_CODEC_MODEL;
    case ErrorCode::kData:
      return KVS_CODEC_STREAM;
    case ErrorCode::kEnvironment:
      return KVS_CODEC_MEMORY;
    case ErrorCode::kInternal:
      break;
  }
  return KVS_CODEC_INTERNAL;
}

kvs_codec_status fail(kvs_codec_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();
  }
  return status;
}

/// Returns the status of act(); of an exception its status, and keeps its text.
template <class Act>
int guarded(Act act) noexcept try {
  return act();
} catch (const Error& error) {
  return fail(status_of(error.code()), error.what());
} catch (const std::bad_alloc&) {
  return fail(KVS_CODEC_MEMORY, "out of memory");
} catch (const std::exception& error) {
  return fail(KVS_CODEC_INTERNAL, error.what());
}

void require(bool holds, const char* argument, const std::string& problem) {
  if (!holds) throw Error(ErrorCode::kUsage, argument, problem);
}

template <class T>
T& given(T* pointer, const char* argument) {
  require(pointer != nullptr, argument, "found NULL");
  return *pointer;
}

std::span<const std::byte> bytes_of(const void* stream, std::size_t bytes) {
  return {static_cast<const std::byte*>(&given(static_cast<const std::byte*>(stream), "stream")), bytes};
}

/// @throws Error kConflict unless the config was made for the caller's model
void check_model(const kvs::ModelRecord& model, const kvs_codec_options& options, const std::string& where) {
  const auto compare = [&](const std::string& field, const std::string& found, const std::string& expected) {
    if (found != expected)
      throw Error(ErrorCode::kConflict, where + ": model." + field, "found " + found + ", expected " + expected);
  };
  compare("layers", std::to_string(model.layers), std::to_string(options.layers));
  const std::uint32_t* const kv_heads = &given(options.kv_heads, "options: kv_heads");
  const std::uint32_t* const head_dim = &given(options.head_dim, "options: head_dim");
  for (std::size_t layer = 0; layer < model.layers; ++layer) {
    const bool has_cache = model.has_cache(layer);
    const std::string of_layer = " of layer " + std::to_string(layer);
    compare("kv_heads" + of_layer, std::to_string(has_cache ? model.kv_heads.of(layer) : 0),
            std::to_string(kv_heads[layer]));
    compare("head_dim" + of_layer, std::to_string(has_cache ? model.head_dim.of(layer) : 0),
            std::to_string(head_dim[layer]));
  }
  if (options.sha256 != nullptr) compare("sha256", model.sha256, options.sha256);
}

kvs::StreamId id_of(const kvs::Json& config) {
  const std::string digits = config.at("files").at(0).at("sha256").get<std::string>();
  kvs::StreamId id{};
  for (std::size_t n = 0; n < id.size(); ++n)
    std::from_chars(digits.data() + 2 * n, digits.data() + 2 * n + 2, id[n], 16);
  return id;
}

/// The rotations of a model's layers: layers of a kind share one.
using Ropes = std::map<std::size_t, std::shared_ptr<const kvs::KeyRope>>;

std::shared_ptr<const kvs::KeyRope> rope_of(const kvs::ModelRecord& model, std::size_t layer, Ropes& ropes,
                                            const std::string& where) {
  const kvs::ModelRecord::Rope& rope = model.rope;
  const std::size_t kind = layer < rope.layer_kinds.size() ? rope.layer_kinds[layer] : rope.frequencies.size();
  if (kind >= rope.frequencies.size() || kind >= rope.factors.size() ||
      2 * rope.frequencies[kind].size() > model.head_dim.of(layer) || !(rope.factors[kind] > 0))
    throw Error(ErrorCode::kInput, where + ": /model/rope",
                "found no frequencies of layer " + std::to_string(layer) + " for at most its head_dim");
  std::shared_ptr<const kvs::KeyRope>& made = ropes[kind];
  if (!made) made = std::make_shared<kvs::KeyRope>(rope.frequencies[kind], rope.factors[kind]);
  return made;
}

kvs_codec open_config(const fs::path& path, const kvs_codec_options& options) {
  const std::string where = path.string();
  const kvs::Json config = kvs::read_config(path);
  if (config.at("method") != "transform")
    throw Error(ErrorCode::kInput, where + ": /method",
                "found " + config.at("method").get<std::string>() + ", expected transform");
  const auto model = kvs::from_json<kvs::ModelRecord>(kvs::JsonCursor(config.at("model"), where));
  check_model(model, options, where);
  kvs_codec codec{.threads = options.threads > 0 ? static_cast<int>(options.threads) : omp_get_max_threads()};
  kvs::CpuCoding ops(codec.threads);
  const kvs::StreamId id = id_of(config);
  Ropes ropes;
  for (const kvs::TransformLayer& layer : kvs::read_transform_layers(config, path)) {
    const kvs::TransformShape shape{model.kv_heads.of(layer.layer), model.head_dim.of(layer.layer)};
    std::vector<std::shared_ptr<const kvs::KeyRope>> of_layers{rope_of(model, layer.layer, ropes, where)};
    for (const std::size_t other : layer.others) of_layers.push_back(rope_of(model, other, ropes, where));
    const auto add = [&](const std::shared_ptr<const kvs::GroupCodec>& group) {
      for (const std::uint32_t of_group : group->layers()) codec.groups[of_group] = group;
    };
    if (layer.form() == kvs::TransformForm::kStorage)
      add(std::make_shared<kvs::StorageCodec>(ops, layer, shape, std::move(of_layers), id));
    else
      add(std::make_shared<kvs::RowCodec>(ops, layer, shape, std::move(of_layers), id));
  }
  return codec;
}

/// @throws Error kUsage unless a layer's rows depend on this layer alone. @param use  the function for the others
const kvs::GroupCodec& alone(const kvs::GroupCodec& group, const std::string& use) {
  require(
      group.layers().size() == 1, "layer",
      "found one of " + std::to_string(group.layers().size()) + " that share rows, expected one alone: call " + use);
  require(group.channels() == 0, "layer",
          "found rows that are predicted from embeddings, expected others: call " + use);
  return group;
}

kvs_codec_layout layout_of(const kvs::GroupCodec& codec) {
  const kvs_codec_group group = alone(codec, "kvs_codec_group_of").group();
  require(group.form == KVS_CODEC_FORM_RANDOM_ACCESS, "layer",
          "found the storage form, whose tokens have no fixed size, expected rows: call kvs_codec_group_of");
  return {.rows = group.rows,
          .kv_heads = group.kv_heads,
          .head_dim = group.head_dim,
          .sinks = group.sinks,
          .recent = group.recent,
          .outliers = group.outliers,
          .head_bytes = group.head_bytes,
          .sink_bytes = group.sink_bytes,
          .token_bytes = group.token_bytes,
          .outlier_bytes = group.outlier_bytes};
}

/// Encodes a block with a group's states.
int encode_block(const kvs_codec& codec, const kvs::GroupCodec& group, const kvs_codec_block& block,
                 const kvs::GroupStates& states, void* stream, std::size_t capacity, std::size_t* bytes) {
  std::byte* const to = &given(static_cast<std::byte*>(stream), "stream");
  kvs::CpuCoding ops(codec.threads);
  std::size_t& needed = given(bytes, "bytes");
  needed = group.encode(ops, codec.threads, block, states, {to, capacity});
  if (needed <= capacity) return KVS_CODEC_OK;
  const std::string text = "capacity: found " + std::to_string(capacity) + " bytes, expected " +
                           std::to_string(needed) + " (kvs_codec_bound)";
  return fail(KVS_CODEC_SPACE, text.c_str());
}

kvs::GroupStates states_of(const kvs::GroupCodec& group, const kvs_codec_states* states,
                           const kvs_codec_inputs* inputs) {
  return {{&given(states, "states"), group.layers().size()}, inputs};
}

}  // namespace

uint32_t kvs_codec_version(void) { return KVS_CODEC_VERSION; }

const char* kvs_codec_error(void) { return last_error().c_str(); }

int kvs_codec_open(uint32_t version, const char* config, const kvs_codec_options* options, kvs_codec** codec) {
  const auto open = [&] {
    given(codec, "codec") = nullptr;
    require(version == KVS_CODEC_VERSION, "version",
            "found " + std::to_string(version) + ", expected " + std::to_string(KVS_CODEC_VERSION));
    const kvs_codec_options& all = given(options, "options");
    const std::string device = all.device == nullptr ? "cpu" : all.device;
    require(device == "cpu", "options: device", "found " + device + ", expected cpu");
    constexpr std::uint32_t kMaxThreads = 4096;
    require(all.threads <= kMaxThreads, "options: threads",
            "found " + std::to_string(all.threads) + ", expected at most " + std::to_string(kMaxThreads));
    *codec = new kvs_codec(open_config(&given(config, "config"), all));
    return KVS_CODEC_OK;
  };
  const int status = guarded(open);
  // A config's damaged tensors are data too.
  return status == KVS_CODEC_STREAM ? KVS_CODEC_CONFIG : status;
}

void kvs_codec_close(kvs_codec* codec) { delete codec; }

int kvs_codec_layout_of(const kvs_codec* codec, uint32_t layer, kvs_codec_layout* layout) {
  return guarded([&] {
    given(layout, "layout") = layout_of(given(codec, "codec").group(layer));
    return KVS_CODEC_OK;
  });
}

int kvs_codec_bound(const kvs_codec* codec, const kvs_codec_block* block, size_t* bytes) {
  return guarded([&] {
    const kvs_codec_block& tokens = given(block, "block");
    given(bytes, "bytes") = given(codec, "codec").group(tokens.layer).bound(tokens);
    return KVS_CODEC_OK;
  });
}

int kvs_codec_group_of(const kvs_codec* codec, uint32_t layer, kvs_codec_group* group) {
  return guarded([&] {
    given(group, "group") = given(codec, "codec").group(layer).group();
    return KVS_CODEC_OK;
  });
}

int kvs_codec_encode(const kvs_codec* codec, const kvs_codec_block* block, const kvs_codec_states* states, void* stream,
                     size_t capacity, size_t* bytes) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const kvs_codec_block& tokens = given(block, "block");
    const kvs::GroupCodec& group = alone(all.group(tokens.layer), "kvs_codec_encode_group");
    return encode_block(all, group, tokens, states_of(group, states, nullptr), stream, capacity, bytes);
  });
}

int kvs_codec_encode_group(const kvs_codec* codec, const kvs_codec_block* block, const kvs_codec_states* states,
                           const kvs_codec_inputs* inputs, void* stream, size_t capacity, size_t* bytes) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const kvs_codec_block& tokens = given(block, "block");
    const kvs::GroupCodec& group = all.group(tokens.layer);
    return encode_block(all, group, tokens, states_of(group, states, inputs), stream, capacity, bytes);
  });
}

int kvs_codec_inspect(const kvs_codec* codec, const void* stream, size_t bytes, kvs_codec_stream* content) {
  return guarded([&] {
    const std::span<const std::byte> all = bytes_of(stream, bytes);
    given(content, "content") = given(codec, "codec").of_stream(all).inspect(all);
    return KVS_CODEC_OK;
  });
}

int kvs_codec_decode(const kvs_codec* codec, const void* stream, size_t bytes, uint32_t first, uint32_t count,
                     const kvs_codec_states* states) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const std::span<const std::byte> coded = bytes_of(stream, bytes);
    const kvs::GroupCodec& group = alone(all.of_stream(coded), "kvs_codec_decode_group");
    kvs::CpuCoding ops(all.threads);
    group.decode(ops, all.threads, coded, first, count, states_of(group, states, nullptr));
    return KVS_CODEC_OK;
  });
}

int kvs_codec_decode_group(const kvs_codec* codec, const void* stream, size_t bytes, uint32_t first, uint32_t count,
                           const kvs_codec_states* states, const kvs_codec_inputs* inputs) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const std::span<const std::byte> coded = bytes_of(stream, bytes);
    const kvs::GroupCodec& group = all.of_stream(coded);
    kvs::CpuCoding ops(all.threads);
    group.decode(ops, all.threads, coded, first, count, states_of(group, states, inputs));
    return KVS_CODEC_OK;
  });
}

int kvs_codec_attend(const kvs_codec* codec, const void* stream, size_t bytes, uint32_t first, uint32_t count,
                     const kvs_codec_queries* queries, float* out, float* log_sums) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const std::span<const std::byte> coded = bytes_of(stream, bytes);
    const auto* const rows = dynamic_cast<const kvs::RowCodec*>(&all.of_stream(coded));
    require(rows != nullptr, "rows", "found the storage form, expected rows by head");
    kvs::CpuCoding ops(all.threads);
    rows->attend(ops, all.threads, coded, first, count, given(queries, "queries"), &given(out, "out"),
                 &given(log_sums, "log_sums"));
    return KVS_CODEC_OK;
  });
}
