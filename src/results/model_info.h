// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/json_fields.h"
#include "io/layer_sizes.h"

namespace kvs::inline results {

/// The properties of a model that can be read without its weights (docs/models.md).
struct ModelInfo {
  struct File {
    std::string path = {};
    std::uint64_t bytes = 0;
    static void fields(auto& of, auto&& field) { field("path", of.path)("bytes", of.bytes); }
  };
  /// The tensors that are stored in one type.
  struct TensorType {
    std::string type = {};
    std::size_t tensors = 0;
    std::uint64_t parameters = 0, bytes = 0;
    static void fields(auto& of, auto&& field) {
      field("type", of.type)("tensors", of.tensors)("parameters", of.parameters)("bytes", of.bytes);
    }
  };
  struct Geometry {
    std::size_t layers = 0, d_model = 0;
    LayerSizes d_ff = {}, query_heads = {}, kv_heads = {}, head_dim = {};  // heads: of the layers with a KV cache
    /// The layers that mix tokens in the same way: "attention in a window of 512 tokens".
    struct Kind {
      std::string what = {};
      std::size_t layers = 0;
      static void fields(auto& of, auto&& field) { field("what", of.what)("layers", of.layers); }
    };
    std::vector<Kind> kinds = {};
    std::optional<std::vector<std::size_t>> layers_without_cache = {};  // absent: every layer has a KV cache
    std::size_t vocabulary = 0;
    bool tied_head = false;
    std::size_t context = 0;
    /// The parts of the row that all heads of latent attention read.
    struct Latent {
      std::size_t rank = 0, shared_key = 0;  // channels
      static void fields(auto& of, auto&& field) { field("rank", of.rank)("shared_key", of.shared_key); }
    };
    std::optional<Latent> latent = {};  // absent: heads have keys and values of their own
    static void fields(auto& of, auto&& field) {
      field("layers", of.layers)("d_model", of.d_model)("d_ff", of.d_ff)("query_heads", of.query_heads)(
          "kv_heads", of.kv_heads)("head_dim", of.head_dim);
      field.newer("kinds", of.kinds);
      field.absent_or("layers_without_cache", of.layers_without_cache);
      field.absent_or("latent", of.latent);
      field("vocabulary", of.vocabulary)("tied_head", of.tied_head)("context", of.context);
    }
  };
  /// The experts of the sparse layers, the same in each.
  struct Experts {
    std::size_t layers = 0, count = 0, chosen = 0, d_ff = 0, shared_d_ff = 0;  // shared_d_ff 0: no shared expert
    std::uint64_t active_parameters = 0;                                       // that one token goes through
    static void fields(auto& of, auto&& field) {
      field("layers", of.layers)("count", of.count)("chosen", of.chosen)("d_ff", of.d_ff)(
          "shared_d_ff", of.shared_d_ff)("active_parameters", of.active_parameters);
    }
  };
  /// A group of layers with equal RoPE settings, for documents of `window` tokens.
  struct Rope {
    std::size_t layers = 0;
    std::string type = "default";
    double base = 0;
    Json scaling = {};
    std::size_t rotary_dim = 0, chunks = 0;  // chunks: those that turn
    double factor = 1, highest_frequency = 0, lowest_frequency = 0, shortest_wavelength = 0, longest_wavelength = 0;
    std::size_t chunks_below_one_turn = 0;  // chunks that make less than one turn within the context
    static void fields(auto& of, auto&& field) {
      field("layers", of.layers)("type", of.type)("base", of.base)("scaling", of.scaling)("rotary_dim", of.rotary_dim)(
          "chunks", of.chunks)("factor", of.factor)("highest_frequency", of.highest_frequency)(
          "lowest_frequency", of.lowest_frequency)("shortest_wavelength", of.shortest_wavelength)(
          "longest_wavelength", of.longest_wavelength)("chunks_below_one_turn", of.chunks_below_one_turn);
    }
  };
  /// Either `error` is set, or the other members are.
  struct Tokenizer {
    std::optional<std::string> error = {}, kind = {};
    std::optional<std::size_t> tokens = {};
    std::optional<std::optional<std::int32_t>> bos = {};
    std::optional<bool> adds_bos = {};
    std::optional<std::vector<std::string>> notes = {};
    static void fields(auto& of, auto&& field) {
      field.absent_or("error", of.error);
      field.absent_or("kind", of.kind);
      field.absent_or("tokens", of.tokens);
      field.absent_or("bos", of.bos);
      field.absent_or("adds_bos", of.adds_bos);
      field.absent_or("notes", of.notes);
    }
  };
  struct BytesByType {
    std::size_t f32 = 0, f16 = 0, bf16 = 0;
    static void fields(auto& of, auto&& field) { field("f32", of.f32)("f16", of.f16)("bf16", of.bf16); }
  };
  struct KvCache {
    std::size_t reals_per_token = 0;
    BytesByType bytes_per_token = {}, bytes_per_1024_tokens = {};
    std::size_t windowed_layers = 0, bytes_at_context_f16 = 0;
    static void fields(auto& of, auto&& field) {
      field("reals_per_token", of.reals_per_token)("bytes_per_token", of.bytes_per_token)(
          "bytes_per_1024_tokens", of.bytes_per_1024_tokens)("windowed_layers", of.windowed_layers)(
          "bytes_at_context_f16", of.bytes_at_context_f16);
    }
  };
  /// The states of recurrent layers, which do not grow with the tokens and which no method changes.
  struct RecurrentStates {
    std::size_t layers = 0, reals = 0, bytes = 0;  // bytes: in f32
    static void fields(auto& of, auto&& field) { field("layers", of.layers)("reals", of.reals)("bytes", of.bytes); }
  };
  /// Memory of each command in bytes.
  struct CommandMemory {
    std::uint64_t weights = 0, capture = 0, spectrum = 0, eval = 0, faedkv = 0, elitekv = 0, elitekv_rank = 0;
    static void fields(auto& of, auto&& field) {
      field("weights", of.weights)("capture", of.capture)("spectrum", of.spectrum)("eval", of.eval)(
          "faedkv", of.faedkv)("elitekv", of.elitekv)("elitekv --rank", of.elitekv_rank);
    }
  };
  struct Memory {
    std::size_t window = 0;
    CommandMemory f32 = {}, bf16 = {};
    static void fields(auto& of, auto&& field) { field("window", of.window)("f32", of.f32)("bf16", of.bf16); }
  };
  struct Processor {
    std::string isa = {};
    bool bf16_faster = false;
    static void fields(auto& of, auto&& field) { field("isa", of.isa)("bf16_faster", of.bf16_faster); }
  };
  struct MethodRow {
    std::string method = {}, title = {}, what = {};
    std::string form = {};  // what a reader can do with the bytes
    bool applies = false;
    std::optional<std::string> reason = {};              // the reason if the method does not apply
    std::optional<std::vector<std::string>> notes = {};  // set if the method applies
    static void fields(auto& of, auto&& field) {
      field("method", of.method)("title", of.title)("what", of.what);
      field.newer("form", of.form);
      field("applies", of.applies);
      field.absent_or("reason", of.reason);
      field.absent_or("notes", of.notes);
    }
  };
  /// An engine, and the storage types of the full cache that it executes for the model.
  struct EngineRow {
    std::string engine = {}, version = {}, what = {};
    std::vector<std::string> types = {};     // KIND, or KIND/KIND of keys and values
    bool methods = false;                    // executes other methods
    std::optional<std::string> reason = {};  // why it does not execute the full cache at 16 bits
    static void fields(auto& of, auto&& field) {
      field("engine", of.engine)("version", of.version)("what", of.what)("types", of.types)("methods", of.methods);
      field.absent_or("reason", of.reason);
    }
  };
  std::string name = {}, path = {}, architecture = {}, format = {};
  std::vector<File> files = {};
  std::uint64_t parameters = 0;
  std::vector<TensorType> tensor_types = {};  // by bytes, descending
  Geometry geometry = {};
  std::optional<Experts> experts = {};  // set if some layers have experts
  std::vector<Rope> rope = {};
  Tokenizer tokenizer = {};
  KvCache kv_cache = {};
  std::optional<RecurrentStates> recurrent_states = {};  // set if some layers are recurrent
  Memory memory = {};
  Processor processor = {};
  std::vector<MethodRow> methods = {};
  std::vector<EngineRow> engines = {};
  std::vector<std::string> notes = {};

  static void fields(auto& of, auto&& field) {
    field("name", of.name)("path", of.path)("architecture", of.architecture)("format", of.format)("files", of.files)(
        "parameters", of.parameters)("tensor_types", of.tensor_types)("geometry", of.geometry);
    field.absent_or("experts", of.experts);
    field("rope", of.rope)("tokenizer", of.tokenizer)("kv_cache", of.kv_cache);
    field.absent_or("recurrent_states", of.recurrent_states);
    field("memory", of.memory)("processor", of.processor)("methods", of.methods)("engines", of.engines)("notes",
                                                                                                        of.notes);
  }
};

/// Returns a summary of a few dozen lines.
std::string to_text(const ModelInfo& info);

}  // namespace kvs::inline results
