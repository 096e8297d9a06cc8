#include "core/error.h"
#include "io/file.h"
#include "io/json.h"
#include "model/parsed_config.h"

namespace kvs {

namespace {

constexpr std::size_t kConfigBytes = 1UL << 20;
constexpr std::uint64_t kDefaultContext = 2048;  // LlamaConfig's, for configs older than the key

[[noreturn]] void unsupported(const JsonCursor& cursor, const std::string& where, const std::string& problem) {
  throw Error(ErrorCode::kUnsupported, where + ": " + cursor.pointer(), problem);
}

std::size_t count(const JsonCursor& root, std::string_view key, std::uint64_t most) {
  return static_cast<std::size_t>(root.at(key).integer(1, static_cast<std::int64_t>(most)));
}

bool flag(const JsonCursor& root, std::string_view key) {
  return !key.empty() && root.has(key) && root.at(key).boolean();
}

double positive(const JsonCursor& cursor, std::string_view expected = "a number above 0") {
  const double value = cursor.real();
  if (!(value > 0)) cursor.fail(expected);
  return value;
}

const Architecture& find_row(const JsonCursor& root, const std::string& where) {
  if (root.has("architectures")) {
    const JsonCursor classes = root.at("architectures");
    if (classes.array_size() == 0) classes.fail("the name of a class");
    const JsonCursor first = classes.at(std::size_t{0});
    return architecture_of_hf_class(first.string(), where + ": " + first.pointer());
  }
  return architecture_of_model_type(root.at("model_type").string(), where + ": /model_type");
}

/// Options whose other values would change the arithmetic: refused, never ignored.
void check_options(const JsonCursor& root, const Architecture& row, const std::string& where) {
  if (root.has("hidden_act") && root.at("hidden_act").string() != "silu") {
    unsupported(root.at("hidden_act"), where, "found \"" + root.at("hidden_act").string() + "\", supported is: silu");
  }
  if (root.has("quantization_config")) {
    const JsonCursor quantization = root.at("quantization_config");
    const std::string method =
        quantization.has("quant_method") ? quantization.at("quant_method").string() : "of unknown method";
    unsupported(quantization, where,
                "found quantised weights (" + method + "), supported are: F32, F16, BF16, or a GGUF");
  }
  if (!row.window_key.empty() && !(root.value().contains(row.window_key) && root.at(row.window_key).is_null())) {
    throw Error(ErrorCode::kUnsupported, where + ": /" + std::string(row.window_key),
                "found sliding-window attention (a missing key means 4096), supported is: null");
  }
}

}  // namespace

ParsedConfig parse_hf_config(const std::filesystem::path& path) {
  const std::string where = path.string();
  const Json json = parse_json(read_text_file(path, kConfigBytes), where, {.bytes = kConfigBytes, .depth = 64});
  const JsonCursor root(json, where);
  ParsedConfig parsed;
  parsed.architecture = &find_row(root, where);
  check_options(root, *parsed.architecture, where);

  ModelConfig& config = parsed.config;
  config.architecture = parsed.architecture->name;
  config.layers = count(root, "num_hidden_layers", kMostLayers);
  config.d_model = count(root, "hidden_size", kMostWidth);
  config.d_ff = count(root, "intermediate_size", kMostWidth);
  config.query_heads = count(root, "num_attention_heads", kMostHeads);
  config.kv_heads =
      root.has("num_key_value_heads") ? count(root, "num_key_value_heads", kMostHeads) : config.query_heads;
  config.head_dim = root.has("head_dim") ? count(root, "head_dim", kMostWidth) : 0;
  complete_geometry(config, where, {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"});
  config.vocabulary = count(root, "vocab_size", kMostVocabulary);
  config.context =
      root.has("max_position_embeddings") ? count(root, "max_position_embeddings", kMostContext) : kDefaultContext;
  config.norm_epsilon = static_cast<float>(positive(root.at("rms_norm_eps")));
  config.tied_head = flag(root, "tie_word_embeddings");
  parse_hf_rope(root, parsed.architecture->rope, config);
  parsed.attention_bias = flag(root, parsed.architecture->attention_bias_key);
  parsed.mlp_bias = flag(root, parsed.architecture->mlp_bias_key);
  if (root.has("auto_map")) parsed.notes.push_back(where + ": auto_map names custom code, which is never run");
  return parsed;
}

}  // namespace kvs
