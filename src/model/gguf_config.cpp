#include <cmath>

#include "core/error.h"
#include "io/gguf.h"
#include "model/parsed_config.h"

namespace kvs {

namespace {

/// Keys of one architecture: "block_count" is stored as "llama.block_count".
class Keys {
 public:
  Keys(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(std::string(architecture) + ".") {}

  bool has(std::string_view key) const { return file_.has(name(key)); }
  std::size_t count(std::string_view key, std::uint64_t most) const {
    const std::uint64_t value = file_.get_unsigned(name(key), most);
    if (value == 0) fail(ErrorCode::kInput, key, "found 0, expected 1 or more");
    return static_cast<std::size_t>(value);
  }
  bool nonzero(std::string_view key) const { return has(key) && file_.get_unsigned(name(key), UINT64_MAX) != 0; }
  double positive(std::string_view key) const {
    const double value = file_.get_real(name(key));
    if (!(value > 0) || !std::isfinite(value)) {
      fail(ErrorCode::kInput, key, "found " + std::to_string(value) + ", expected a number above 0");
    }
    return value;
  }
  [[noreturn]] void fail(ErrorCode code, std::string_view key, const std::string& problem) const {
    throw Error(code, file_.path().string() + ": " + name(key), problem);
  }

 private:
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  const GgufFile& file_;
  std::string prefix_;
};

/// Options whose other values would change the arithmetic: refused, never ignored.
void check_options(const Keys& keys, const ModelConfig& config) {
  const auto must_equal = [&](std::string_view key, std::size_t expected) {
    if (!keys.has(key)) return;
    const std::size_t found = keys.count(key, kMostWidth);
    if (found == expected) return;
    keys.fail(ErrorCode::kUnsupported, key,
              "found " + std::to_string(found) + ", supported is the head size, " + std::to_string(expected));
  };
  must_equal("attention.value_length", config.head_dim);
  if (keys.nonzero("attention.sliding_window")) {
    keys.fail(ErrorCode::kUnsupported, "attention.sliding_window",
              "found sliding-window attention, supported is: none");
  }
  if (keys.nonzero("expert_count")) {
    keys.fail(ErrorCode::kUnsupported, "expert_count", "found a mixture of experts, supported are: dense models");
  }
}

/// Rows of the embedding; its shape is checked with all others later.
std::size_t embedding_rows(const GgufFile& file) {
  const StoredTensor* embedding = file.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 || embedding->shape[0] == 0 ||
      embedding->shape[0] > kMostVocabulary) {
    throw Error(ErrorCode::kInput, file.path().string() + ": tensor token_embd.weight",
                "expected a matrix of at most " + std::to_string(kMostVocabulary) + " rows");
  }
  return static_cast<std::size_t>(embedding->shape[0]);
}

}  // namespace

ParsedConfig parse_gguf_config(const GgufFile& file) {
  const std::string where = file.path().string();
  ParsedConfig parsed;
  const std::string_view name = file.get_string("general.architecture");
  parsed.architecture = &architecture_of_gguf(name, where + ": general.architecture");
  const Keys keys(file, name);

  ModelConfig& config = parsed.config;
  config.name = file.has("general.name") ? std::string(file.get_string("general.name")) : file.path().stem().string();
  config.architecture = parsed.architecture->name;
  config.layers = keys.count("block_count", kMostLayers);
  config.d_model = keys.count("embedding_length", kMostWidth);
  config.d_ff = keys.count("feed_forward_length", kMostWidth);
  config.query_heads = keys.count("attention.head_count", kMostHeads);
  config.kv_heads =
      keys.has("attention.head_count_kv") ? keys.count("attention.head_count_kv", kMostHeads) : config.query_heads;
  config.head_dim = keys.has("attention.key_length") ? keys.count("attention.key_length", kMostWidth) : 0;
  complete_geometry(config, where,
                    {"embedding_length", "attention.head_count", "attention.head_count_kv", "attention.key_length"});
  check_options(keys, config);
  config.vocabulary = keys.has("vocab_size") ? keys.count("vocab_size", kMostVocabulary) : embedding_rows(file);
  config.context = keys.count("context_length", kMostContext);
  config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  config.tied_head = file.find("output.weight") == nullptr;
  parse_gguf_rope(file, std::string(name) + ".", parsed.architecture->rope, config);
  return parsed;
}

}  // namespace kvs
