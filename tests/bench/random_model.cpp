// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/random_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/json.h"
#include "tests/bench/random_values.h"

namespace kvs {
namespace {

constexpr std::array kGeometries{
    ModelGeometry{"llama2-7b", "LlamaForCausalLM", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096, 1e4, 1e-5},
    ModelGeometry{"llama3-8b", "LlamaForCausalLM", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 5e5, 1e-5},
    ModelGeometry{"qwen2.5-7b", "Qwen2ForCausalLM", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6, 1e-6,
                  true},
    ModelGeometry{"tiny-llama", "LlamaForCausalLM", "llama", 5, 64, 4, 2, 16, 96, 300, 512, 1e4, 1e-5},
    ModelGeometry{"tiny-qwen2", "Qwen2ForCausalLM", "qwen2", 3, 48, 6, 1, 8, 80, 300, 512, 1e6, 1e-6, true, true},
};

/// One tensor and the offset of its data in its file.
struct Tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t first_byte = 0;

  std::uint64_t size() const { return shape[0] * (shape.size() == 2 ? shape[1] : 1); }
};
using Shard = std::vector<Tensor>;

std::vector<Tensor> tensors_of(const ModelGeometry& g) {
  std::vector<Tensor> tensors;
  const auto add = [&](std::string name, std::vector<std::uint64_t> shape) {
    tensors.push_back({std::move(name), std::move(shape)});
  };
  const std::size_t query_rows = g.query_heads * g.head_dim, key_rows = g.kv_heads * g.head_dim;
  add("model.embed_tokens.weight", {g.vocabulary, g.d_model});
  for (std::size_t layer = 0; layer < g.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + '.';
    add(at + "input_layernorm.weight", {g.d_model});
    for (const auto& [kind, rows] : {std::pair{'q', query_rows}, std::pair{'k', key_rows}, std::pair{'v', key_rows}}) {
      add(at + "self_attn." + kind + "_proj.weight", {rows, g.d_model});
      if (g.qkv_bias) add(at + "self_attn." + kind + "_proj.bias", {rows});
    }
    add(at + "self_attn.o_proj.weight", {g.d_model, query_rows});
    add(at + "post_attention_layernorm.weight", {g.d_model});
    add(at + "mlp.gate_proj.weight", {g.d_ff, g.d_model});
    add(at + "mlp.up_proj.weight", {g.d_ff, g.d_model});
    add(at + "mlp.down_proj.weight", {g.d_model, g.d_ff});
  }
  add("model.norm.weight", {g.d_model});
  if (!g.tied_head) add("lm_head.weight", {g.vocabulary, g.d_model});
  return tensors;
}

std::vector<Shard> shards_of(std::vector<Tensor> tensors, std::size_t item, std::uint64_t max_bytes) {
  std::vector<Shard> shards(1);
  std::uint64_t bytes = 0;
  for (Tensor& tensor : tensors) {
    const std::uint64_t own = tensor.size() * item;
    if (bytes > 0 && bytes + own > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    tensor.first_byte = bytes;
    bytes += own;
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  WrittenFile file(path);
  file.write(text.data(), text.size());
  file.close();
}

std::uint16_t narrowed(float value, DType type) {
  return type == DType::kBF16 ? f32_to_bf16(value) : f32_to_f16(value);
}

void write_values(WrittenFile& file, const Tensor& tensor, const RandomModelOptions& options) {
  constexpr std::uint64_t kSlab = std::uint64_t{1} << 20;
  const std::uint64_t stream = stream_of(tensor.name, options.seed), size = tensor.size();
  const bool norm = tensor.name.find("norm") != std::string::npos;
  const bool bias = tensor.name.ends_with(".bias");
  // A uniform value in [−a, a) has the variance a²/3.
  const double columns = tensor.shape.size() == 2 ? static_cast<double>(tensor.shape[1]) : 1.0;
  const auto half_width = static_cast<float>(norm || bias ? 0.1 : std::sqrt(3.0 / columns));
  const float centre = norm ? 1.0F : 0.0F;
  std::vector<float> wide(static_cast<std::size_t>(std::min(kSlab, size)));
  std::vector<std::uint16_t> narrow(options.dtype == DType::kF32 ? 0 : wide.size());
  for (std::uint64_t first = 0; first < size; first += kSlab) {
    const auto count = static_cast<std::size_t>(std::min(kSlab, size - first));
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < count; ++i) {
      wide[i] = centre + half_width * unit_value(stream + first + i);
      if (!narrow.empty()) narrow[i] = narrowed(wide[i], options.dtype);
    }
    if (narrow.empty())
      file.write(wide.data(), count * sizeof(float));
    else
      file.write(narrow.data(), count * sizeof(std::uint16_t));
  }
}

std::string_view safetensors_type(DType type) {
  return type == DType::kBF16 ? "BF16" : type == DType::kF16 ? "F16" : "F32";
}

void write_shard(const std::filesystem::path& path, const Shard& shard, const RandomModelOptions& options) {
  Json::object_t members;
  members.emplace_back("__metadata__", Json{{"format", "pt"}});
  for (const Tensor& tensor : shard) {
    const std::uint64_t end = tensor.first_byte + tensor.size() * item_size(options.dtype);
    members.emplace_back(tensor.name, Json{{"dtype", safetensors_type(options.dtype)},
                                           {"shape", tensor.shape},
                                           {"data_offsets", {tensor.first_byte, end}}});
  }
  std::string header = dump_json(Json(std::move(members)), -1);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  WrittenFile file(path);
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  for (const Tensor& tensor : shard) write_values(file, tensor, options);
  file.close();
}

std::string padded(std::size_t number) {
  const std::string digits = std::to_string(number);
  return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
}

Json config_of(const ModelGeometry& g, DType dtype) {
  const std::string_view type = dtype == DType::kBF16 ? "bfloat16" : dtype == DType::kF16 ? "float16" : "float32";
  Json config{{"architectures", Json::array({g.hf_class})},
              {"model_type", g.model_type},
              {"hidden_act", "silu"},
              {"hidden_size", g.d_model},
              {"intermediate_size", g.d_ff},
              {"num_hidden_layers", g.layers},
              {"num_attention_heads", g.query_heads},
              {"num_key_value_heads", g.kv_heads},
              {"head_dim", g.head_dim},
              {"vocab_size", g.vocabulary},
              {"max_position_embeddings", g.context},
              {"rope_theta", g.rope_theta},
              {"rms_norm_eps", g.norm_epsilon},
              {"tie_word_embeddings", g.tied_head},
              {"torch_dtype", type},
              {"bos_token_id", 1},
              {"eos_token_id", 2}};
  if (g.model_type == "qwen2") config["use_sliding_window"] = false;
  return config;
}

}  // namespace

std::span<const ModelGeometry> model_geometries() { return kGeometries; }

const ModelGeometry& model_geometry(std::string_view name) {
  const auto found = std::ranges::find(kGeometries, name, &ModelGeometry::name);
  if (found != kGeometries.end()) return *found;
  std::string known;
  for (const ModelGeometry& geometry : kGeometries) known += (known.empty() ? "" : ", ") + std::string(geometry.name);
  throw Error(ErrorCode::kUsage, "geometry", "found '" + std::string(name) + "', expected one of " + known);
}

std::uint64_t write_random_model(const ModelGeometry& geometry, const std::filesystem::path& folder,
                                 const RandomModelOptions& options) {
  if (std::filesystem::exists(folder / "config.json"))
    throw Error(ErrorCode::kConflict, (folder / "config.json").string(), "exists");
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(ErrorCode::kEnvironment, folder.string(), "cannot create: " + failure.message());
  const std::vector<Shard> shards = shards_of(tensors_of(geometry), item_size(options.dtype), options.shard_bytes);
  std::uint64_t total = 0;
  Json map = Json::object();
  for (std::size_t n = 0; n < shards.size(); ++n) {
    const std::string name = shards.size() == 1
                                 ? "model.safetensors"
                                 : "model-" + padded(n + 1) + "-of-" + padded(shards.size()) + ".safetensors";
    write_shard(folder / name, shards[n], options);
    for (const Tensor& tensor : shards[n]) {
      map[tensor.name] = name;
      total += tensor.size() * item_size(options.dtype);
    }
  }
  if (shards.size() > 1) {
    const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", map}};
    write_text(folder / "model.safetensors.index.json", dump_json(index) + "\n");
  }
  write_text(folder / "config.json", dump_json(config_of(geometry, options.dtype)) + "\n");  // last: the model is whole
  return total;
}

}  // namespace kvs
