// SPDX-License-Identifier: Apache-2.0
#include "kvspectrum/codec.h"

#include <omp.h>

#include <new>
#include <string>

#include "core/error.h"
#include "export/codec/config_codec.h"
#include "export/codec/row_codec.h"

struct kvs_codec {
  int threads;
  kvs::ConfigCodec config;
};

namespace {

using kvs::Error;
using kvs::ErrorCode;

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
    const int threads = all.threads > 0 ? static_cast<int>(all.threads) : omp_get_max_threads();
    const std::string path = &given(config, "config");
    const auto check = [&](const kvs::Json&, const kvs::ModelRecord& model) { check_model(model, all, path); };
    *codec = new kvs_codec{threads, kvs::ConfigCodec(path, threads, check)};
    return KVS_CODEC_OK;
  };
  const int status = guarded(open);
  // A config's damaged tensors are data too.
  return status == KVS_CODEC_STREAM ? KVS_CODEC_CONFIG : status;
}

void kvs_codec_close(kvs_codec* codec) { delete codec; }

int kvs_codec_layout_of(const kvs_codec* codec, uint32_t layer, kvs_codec_layout* layout) {
  return guarded([&] {
    given(layout, "layout") = layout_of(given(codec, "codec").config.group(layer));
    return KVS_CODEC_OK;
  });
}

int kvs_codec_bound(const kvs_codec* codec, const kvs_codec_block* block, size_t* bytes) {
  return guarded([&] {
    const kvs_codec_block& tokens = given(block, "block");
    given(bytes, "bytes") = given(codec, "codec").config.group(tokens.layer).bound(tokens);
    return KVS_CODEC_OK;
  });
}

int kvs_codec_group_of(const kvs_codec* codec, uint32_t layer, kvs_codec_group* group) {
  return guarded([&] {
    given(group, "group") = given(codec, "codec").config.group(layer).group();
    return KVS_CODEC_OK;
  });
}

int kvs_codec_encode(const kvs_codec* codec, const kvs_codec_block* block, const kvs_codec_states* states, void* stream,
                     size_t capacity, size_t* bytes) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const kvs_codec_block& tokens = given(block, "block");
    const kvs::GroupCodec& group = alone(all.config.group(tokens.layer), "kvs_codec_encode_group");
    return encode_block(all, group, tokens, states_of(group, states, nullptr), stream, capacity, bytes);
  });
}

int kvs_codec_encode_group(const kvs_codec* codec, const kvs_codec_block* block, const kvs_codec_states* states,
                           const kvs_codec_inputs* inputs, void* stream, size_t capacity, size_t* bytes) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const kvs_codec_block& tokens = given(block, "block");
    const kvs::GroupCodec& group = all.config.group(tokens.layer);
    return encode_block(all, group, tokens, states_of(group, states, inputs), stream, capacity, bytes);
  });
}

int kvs_codec_inspect(const kvs_codec* codec, const void* stream, size_t bytes, kvs_codec_stream* content) {
  return guarded([&] {
    const std::span<const std::byte> all = bytes_of(stream, bytes);
    given(content, "content") = given(codec, "codec").config.of_stream(all).inspect(all);
    return KVS_CODEC_OK;
  });
}

int kvs_codec_decode(const kvs_codec* codec, const void* stream, size_t bytes, uint32_t first, uint32_t count,
                     const kvs_codec_states* states) {
  return guarded([&] {
    const kvs_codec& all = given(codec, "codec");
    const std::span<const std::byte> coded = bytes_of(stream, bytes);
    const kvs::GroupCodec& group = alone(all.config.of_stream(coded), "kvs_codec_decode_group");
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
    const kvs::GroupCodec& group = all.config.of_stream(coded);
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
    const auto* const rows = dynamic_cast<const kvs::RowCodec*>(&all.config.of_stream(coded));
    require(rows != nullptr, "rows", "found the storage form, expected rows by head");
    kvs::CpuCoding ops(all.threads);
    rows->attend(ops, all.threads, coded, first, count, given(queries, "queries"), &given(out, "out"),
                 &given(log_sums, "log_sums"));
    return KVS_CODEC_OK;
  });
}
