// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/random_gguf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "io/gguf_writer.h"
#include "tests/bench/random_values.h"

namespace kvs {
namespace {

constexpr std::array kExpertsGeometries{
    ExpertsGeometry{"qwen3-30b-a3b", 8, 2048, 32, 4, 128, 128, 8, 768, 151936, 40960, 1e6F, 1e-6F},
    ExpertsGeometry{"tiny-qwen3-moe", 3, 256, 8, 2, 32, 8, 2, 256, 512, 512, 1e6F, 1e-6F},
};
constexpr std::size_t kAlignment = 32, kBlockValues = 256, kBlockBytes = 144;

struct GgufTensor {
  enum class Kind : std::uint8_t { kMatrix, kRouter, kGains };
  std::string name;
  std::vector<std::uint64_t> shape;  // outermost axis first
  Kind kind = Kind::kMatrix;

  std::uint64_t size() const {
    std::uint64_t product = 1;
    for (const std::uint64_t extent : shape) product *= extent;
    return product;
  }
  bool coded() const { return kind == Kind::kMatrix; }  // in Q4_K; the others are f32
  std::uint64_t bytes() const { return coded() ? size() / kBlockValues * kBlockBytes : size() * sizeof(float); }
  std::uint64_t padded() const { return (bytes() + kAlignment - 1) / kAlignment * kAlignment; }
};

std::vector<GgufTensor> gguf_tensors_of(const ExpertsGeometry& g) {
  using enum GgufTensor::Kind;
  std::vector<GgufTensor> tensors{{"token_embd.weight", {g.vocabulary, g.d_model}}};
  const std::size_t query_rows = g.query_heads * g.head_dim, key_rows = g.kv_heads * g.head_dim;
  for (std::size_t layer = 0; layer < g.layers; ++layer) {
    const auto add = [&](std::string_view name, std::vector<std::uint64_t> shape, GgufTensor::Kind kind = kMatrix) {
      tensors.push_back({"blk." + std::to_string(layer) + '.' + std::string(name) + ".weight", std::move(shape), kind});
    };
    add("attn_norm", {g.d_model}, kGains);
    add("attn_q", {query_rows, g.d_model});
    add("attn_k", {key_rows, g.d_model});
    add("attn_v", {key_rows, g.d_model});
    add("attn_q_norm", {g.head_dim}, kGains);
    add("attn_k_norm", {g.head_dim}, kGains);
    add("attn_output", {g.d_model, query_rows});
    add("ffn_norm", {g.d_model}, kGains);
    add("ffn_gate_inp", {g.experts, g.d_model}, kRouter);
    add("ffn_gate_exps", {g.experts, g.d_ff, g.d_model});
    add("ffn_up_exps", {g.experts, g.d_ff, g.d_model});
    add("ffn_down_exps", {g.experts, g.d_model, g.d_ff});
  }
  tensors.push_back({"output_norm.weight", {g.d_model}, kGains});
  tensors.push_back({"output.weight", {g.vocabulary, g.d_model}});
  return tensors;
}

GgufMetadataWriter metadata_of(const ExpertsGeometry& g) {
  GgufMetadataWriter metadata;
  metadata.add("general.architecture", "qwen3moe");
  metadata.add("general.name", std::string_view(g.name));
  const auto add = [&](std::string_view key, auto value) { metadata.add("qwen3moe." + std::string(key), value); };
  const auto count = [&](std::string_view key, std::size_t value) { add(key, static_cast<std::uint32_t>(value)); };
  count("block_count", g.layers);
  count("context_length", g.context);
  count("embedding_length", g.d_model);
  count("feed_forward_length", g.d_ff);
  count("expert_feed_forward_length", g.d_ff);
  count("expert_count", g.experts);
  count("expert_used_count", g.chosen);
  count("attention.head_count", g.query_heads);
  count("attention.head_count_kv", g.kv_heads);
  count("attention.key_length", g.head_dim);
  count("attention.value_length", g.head_dim);
  add("attention.layer_norm_rms_epsilon", g.norm_epsilon);
  add("rope.freq_base", g.rope_theta);
  return metadata;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string head_of(const ExpertsGeometry& geometry, const std::vector<GgufTensor>& tensors) {
  const GgufMetadataWriter metadata = metadata_of(geometry);
  std::string head = "GGUF";
  append(head, std::uint32_t{3});
  append(head, std::uint64_t{tensors.size()});
  append(head, metadata.count());
  head += metadata.bytes();
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    append(head, std::uint64_t{tensor.name.size()});
    head += tensor.name;
    append(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) append(head, tensor.shape[axis]);
    append(head, std::uint32_t{tensor.coded() ? 12U : 0U});  // ggml.h: enum ggml_type
    append(head, offset);
    offset += tensor.padded();
  }
  head.resize((head.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  return head;
}

/// Writes blocks of Q4_K with equal scales: value = d · 32 · (q − 7.5) for uniform q of 0 to 15, whose variance is
/// (16² − 1) / 12.
void write_blocks(WrittenFile& file, const GgufTensor& tensor, std::uint64_t stream) {
  constexpr std::size_t kSlab = 4096, kWords = (kBlockBytes - 16) / sizeof(std::uint64_t);
  const auto columns = static_cast<double>(tensor.shape.back());
  const double d = 1 / (32 * std::sqrt(255.0 / 12 * columns));
  std::array<std::uint8_t, 16> head{};
  const std::uint16_t scale = f32_to_f16(static_cast<float>(d)), minimum = f32_to_f16(static_cast<float>(7.5 * d));
  std::memcpy(head.data(), &scale, sizeof scale);
  std::memcpy(head.data() + sizeof scale, &minimum, sizeof minimum);
  std::fill_n(head.begin() + 4, 8, 0xa0);  // 32 for the rows 0 to 3, and the top bits of 32 for the rows 4 to 7
  const std::uint64_t blocks = tensor.size() / kBlockValues;
  std::vector<std::uint8_t> bytes(kSlab * kBlockBytes);
  for (std::uint64_t first = 0; first < blocks; first += kSlab) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kSlab, blocks - first));
#pragma omp parallel for schedule(static)
    for (std::size_t block = 0; block < count; ++block) {
      std::uint8_t* const at = bytes.data() + block * kBlockBytes;
      std::ranges::copy(head, at);
      for (std::size_t word = 0; word < kWords; ++word) {
        const std::uint64_t codes = mixed(stream + (first + block) * kWords + word);
        std::memcpy(at + head.size() + word * sizeof codes, &codes, sizeof codes);
      }
    }
    file.write(bytes.data(), count * kBlockBytes);
  }
}

void write_floats(WrittenFile& file, const GgufTensor& tensor, std::uint64_t stream) {
  std::vector<float> values(static_cast<std::size_t>(tensor.size()), 1.0F);
  if (tensor.kind == GgufTensor::Kind::kRouter) {
    const auto half_width = static_cast<float>(std::sqrt(3.0 / static_cast<double>(tensor.shape.back())));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = half_width * unit_value(stream + i);
  }
  file.write(values.data(), values.size() * sizeof(float));
}

}  // namespace

std::span<const ExpertsGeometry> experts_geometries() { return kExpertsGeometries; }

std::uint64_t write_random_gguf(const ExpertsGeometry& geometry, const std::filesystem::path& file,
                                std::uint64_t seed) {
  if (std::filesystem::exists(file)) throw Error(ErrorCode::kConflict, file.string(), "exists");
  const std::vector<GgufTensor> tensors = gguf_tensors_of(geometry);
  const std::string head = head_of(geometry, tensors);
  WrittenFile out(file);
  out.write(head.data(), head.size());
  std::uint64_t total = 0;
  for (const GgufTensor& tensor : tensors) {
    const std::uint64_t stream = stream_of(tensor.name, seed);
    tensor.coded() ? write_blocks(out, tensor, stream) : write_floats(out, tensor, stream);
    const std::string padding(static_cast<std::size_t>(tensor.padded() - tensor.bytes()), '\0');
    out.write(padding.data(), padding.size());
    total += tensor.bytes();
  }
  out.close();
  return total;
}

}  // namespace kvs
