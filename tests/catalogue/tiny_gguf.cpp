// SPDX-License-Identifier: Apache-2.0
#include "tests/catalogue/tiny_gguf.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <random>
#include <sstream>

#include "tests/io/gguf_builder.h"

namespace kvs::testing {
namespace {

namespace gguf = test::gguf_file;

constexpr std::uint64_t kGgufLayers = 2, kGgufQuery = 32, kGgufKeys = 16, kGgufWide = 32, kGgufTokens = 264;
constexpr std::uint32_t kUnknown = 2, kControl = 3, kByte = 6, kNormal = 1;

std::string token_types() {
  std::string types;
  for (std::uint64_t id = 0; id < kGgufTokens; ++id)
    types += gguf::u32(id == 0 ? kUnknown : id < 3 ? kControl : id < 259 ? kByte : kNormal);
  return types;
}

std::string floats(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) bytes += gguf::raw(value);
  return bytes;
}

}  // namespace

std::vector<std::string> tiny_vocabulary() {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) {
    std::ostringstream name;
    name << "<0x" << std::hex << std::uppercase << std::setw(2) << std::setfill('0') << byte << '>';
    tokens.push_back(name.str());
  }
  tokens.insert(tokens.end(), {"a", "b", "c", "\xe2\x96\x81", "ab"});
  return tokens;
}

std::string array_of_texts(const std::vector<std::string>& texts) {
  std::string entries;
  for (const std::string& one : texts) entries += gguf::text(one);
  return gguf::array(gguf::kString, texts.size(), entries);
}

TinyGguf::TinyGguf(std::uint64_t d_model) {
  const auto number = [&](const char* name, std::uint64_t value) {
    set_key(std::string("llama.") + name, gguf::kU32, gguf::u32(value));
  };
  set_key("general.architecture", gguf::kString, gguf::text("llama"));
  number("block_count", kGgufLayers);
  number("context_length", 512);
  number("embedding_length", d_model);
  number("feed_forward_length", kGgufWide);
  number("attention.head_count", 4);
  number("attention.head_count_kv", 2);
  number("attention.key_length", 8);
  number("attention.value_length", 8);
  set_key("llama.attention.layer_norm_rms_epsilon", gguf::kF32, gguf::raw(1e-5F));
  set_key("llama.rope.freq_base", gguf::kF32, gguf::raw(10000.0F));
  set_key("tokenizer.ggml.model", gguf::kString, gguf::text("llama"));
  set_key("tokenizer.ggml.tokens", gguf::kArray, array_of_texts(tiny_vocabulary()));
  set_key("tokenizer.ggml.scores", gguf::kArray,
          gguf::array(gguf::kF32, kGgufTokens, floats(std::vector<float>(kGgufTokens))));
  set_key("tokenizer.ggml.token_type", gguf::kArray, gguf::array(gguf::kI32, kGgufTokens, token_types()));
  set_key("tokenizer.ggml.bos_token_id", gguf::kU32, gguf::u32(1));

  std::mt19937 random(5);
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> lengths, bool ones = false) {
    const std::size_t size = std::accumulate(lengths.begin(), lengths.end(), std::size_t{1}, std::multiplies<>());
    const std::vector<float> values =
        ones ? std::vector<float>(size, 1.0F) : tiny_weights(random, size, lengths.front());
    tensors.push_back({name, std::move(lengths), gguf::kTypeF32, floats(values)});
  };
  add("token_embd.weight", {d_model, kGgufTokens});
  add("output_norm.weight", {d_model}, true);
  for (std::uint64_t layer = 0; layer < kGgufLayers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    add(prefix + "attn_norm.weight", {d_model}, true);
    add(prefix + "ffn_norm.weight", {d_model}, true);
    add(prefix + "attn_q.weight", {d_model, kGgufQuery});
    add(prefix + "attn_k.weight", {d_model, kGgufKeys});
    add(prefix + "attn_v.weight", {d_model, kGgufKeys});
    add(prefix + "attn_output.weight", {kGgufQuery, d_model});
    add(prefix + "ffn_gate.weight", {d_model, kGgufWide});
    add(prefix + "ffn_up.weight", {d_model, kGgufWide});
    add(prefix + "ffn_down.weight", {kGgufWide, d_model});
  }
}

std::string TinyGguf::bytes() const {
  constexpr std::size_t kAlignment = 32;
  gguf::Parts parts;
  for (const auto& [name, entry] : keys) parts.keys.push_back(entry);
  for (const Tensor& tensor : tensors) {
    parts.tensors.push_back(gguf::tensor(tensor.name, tensor.lengths, tensor.type, parts.data.size()));
    parts.data += tensor.bytes;
    parts.data.resize((parts.data.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  }
  return gguf::gguf(parts);
}

void TinyGguf::set_key(std::string_view name, std::uint32_t type, std::string_view value) {
  const auto found = std::ranges::find(keys, name, &std::pair<std::string, std::string>::first);
  if (found == keys.end())
    keys.emplace_back(name, gguf::key(name, type, value));
  else
    found->second = gguf::key(name, type, value);
}

void TinyGguf::erase_key(std::string_view name) {
  std::erase_if(keys, [&](const auto& key) { return key.first == name; });
}

TinyGguf::Tensor& TinyGguf::tensor(std::string_view name) { return *std::ranges::find(tensors, name, &Tensor::name); }

}  // namespace kvs::testing
