#include <algorithm>
#include <set>

#include "core/error.h"
#include "export/config.h"
#include "export/schema_check.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/tensor_archive.h"
#include "policy/methods.h"

namespace kvs {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMaximumBytes = 64UL << 20;

std::vector<std::size_t> layers_of(const Json& config, const std::string& where) {
  const JsonCursor layers = JsonCursor(config, where).at("parameters").at("layers");
  const auto count = config.at("model").at("layers").get<std::size_t>();
  std::vector<std::size_t> list;
  for (std::size_t n = 0; n < layers.array_size(); ++n) {
    list.push_back(layers.at(n).unsigned_integer(count - 1));
    if (n > 0 && list[n] <= list[n - 1]) layers.at(n).fail("layers in ascending order, each once");
  }
  return list;
}

/// `lists` holds per layer (and, with heads > 0, per head) distinct indices below `limit`.
void check_index_list(const JsonCursor& list, std::size_t limit, std::size_t length) {
  if (length != 0 && list.array_size() != length) list.fail("a list of " + std::to_string(length) + " indices");
  std::set<std::uint64_t> seen;
  for (std::size_t n = 0; n < list.array_size(); ++n)
    if (!seen.insert(list.at(n).unsigned_integer(limit - 1)).second) list.at(n).fail("each index once");
}

void expect_length(const JsonCursor& list, std::size_t length, const std::string& what) {
  if (list.array_size() != length)
    list.fail("a list with one entry for each of the " + std::to_string(length) + ' ' + what);
}

void check_faedkv(const Json& config, const std::string& where) {
  const JsonCursor parameters = JsonCursor(config, where).at("parameters");
  const std::size_t layers = layers_of(config, where).size();
  const auto chunks = parameters.at("chunks").unsigned_integer();
  const JsonCursor kept = parameters.at("kept");
  expect_length(kept, layers, "layers");
  for (std::size_t n = 0; n < layers; ++n) check_index_list(kept.at(n), chunks, 0);
  const JsonCursor ablation = JsonCursor(config, where).at("calibration").at("ablation");
  for (const char* member : {"delta", "interval", "documents"}) {
    if (!ablation.has(member)) continue;  // documents: races only; the schema asks for the others
    expect_length(ablation.at(member), layers, "layers");
    for (std::size_t n = 0; n < layers; ++n) expect_length(ablation.at(member).at(n), chunks, "chunks");
  }
  if (!ablation.has("undecided")) return;
  expect_length(ablation.at("undecided"), layers, "layers");
  for (std::size_t n = 0; n < layers; ++n) check_index_list(ablation.at("undecided").at(n), chunks, 0);
}

/// The chunk ↔ frequency map: of every kind of RoPE a frequency per chunk, of every layer a kind.
void check_rope(const JsonCursor& model) {
  const JsonCursor rope = model.at("rope"), frequencies = rope.at("frequencies"), layers = rope.at("layer_kinds");
  const auto rotary_dim = rope.at("rotary_dim").unsigned_integer(model.at("head_dim").unsigned_integer());
  const std::size_t kinds = rope.has("kinds") ? rope.at("kinds").array_size() : 1;
  expect_length(frequencies, kinds, "kinds");
  expect_length(rope.at("factors"), kinds, "kinds");
  for (std::size_t kind = 0; kind < kinds; ++kind) expect_length(frequencies.at(kind), rotary_dim / 2, "chunks");
  expect_length(layers, model.at("layers").unsigned_integer(), "layers");
  for (std::size_t n = 0; n < layers.array_size(); ++n)
    if (layers.at(n).unsigned_integer() >= kinds) layers.at(n).fail("a kind below " + std::to_string(kinds));
}

void check_elitekv(const Json& config, const std::string& where) {
  const JsonCursor root(config, where), parameters = root.at("parameters");
  const std::size_t layers = layers_of(config, where).size();
  check_rope(root.at("model"));
  const auto chunks = root.at("model").at("rope").at("rotary_dim").unsigned_integer() / 2;
  const auto elite_count = parameters.at("r").unsigned_integer(chunks);
  const bool per_query_head = root.at("calibration").at("ropelite").at("granularity").string() == "query-head";
  const auto heads = root.at("model").at(per_query_head ? "query_heads" : "kv_heads").unsigned_integer();
  const JsonCursor elite = parameters.at("elite"), ropelite = root.at("calibration").at("ropelite");
  if (ropelite.at("layers").value() != parameters.at("layers").value())
    ropelite.at("layers").fail("the layers of /parameters/layers");
  expect_length(ropelite.at("error"), layers, "layers");
  expect_length(elite, layers, "layers");
  for (std::size_t n = 0; n < layers; ++n) {
    expect_length(elite.at(n), heads, "heads");
    expect_length(ropelite.at("error").at(n), heads, "heads");
    for (std::size_t h = 0; h < heads; ++h) {
      check_index_list(elite.at(n).at(h), chunks, elite_count);
      expect_length(ropelite.at("error").at(n).at(h), elite_count, "picks");
    }
  }
}

void check_files(const Json& config, const std::filesystem::path& path) {
  const JsonCursor files = JsonCursor(config, path.string()).at("files");
  for (std::size_t n = 0; n < files.array_size(); ++n) {
    const std::string& name = files.at(n).at("path").string();
    if (std::filesystem::path(name).filename() != name || name == "." || name == "..")
      files.at(n).at("path").fail("a plain file name beside the config");
    const std::string digest = sha256_of_file(path.parent_path() / name);
    if (digest != files.at(n).at("sha256").string()) files.at(n).at("sha256").fail(digest + ", the file's digest");
  }
}

/// The factors' shapes against what the config says of them: docs/configs.md.
void check_factors(const Json& config, const std::filesystem::path& path) {
  const JsonCursor root(config, path.string()), parameters = root.at("parameters");
  const std::size_t layers = layers_of(config, path.string()).size();
  const bool joint = parameters.at("factorization").string() == "joint", factors = root.at("files").array_size() > 0;
  const JsonCursor singular = root.at("calibration").at("singular_values");
  if (factors) expect_length(singular, layers, "layers");
  if (factors != (singular.array_size() > 0)) root.at("files").fail("a file of factors beside singular_values");
  if (!factors) return;
  const auto rank = parameters.at("d_ckv").unsigned_integer(),
             heads = root.at("model").at("kv_heads").unsigned_integer(),
             head_dim = root.at("model").at("head_dim").unsigned_integer();
  const std::uint64_t values = heads * head_dim, keys = values - 2 * heads * parameters.at("r").unsigned_integer();
  if (!joint) expect_length(parameters.at("ranks"), layers, "layers");
  const std::filesystem::path file = path.parent_path() / root.at("files").at(0).at("path").string();
  const auto archive = open_safetensors(file);
  const auto expect = [&](const std::string& name, std::size_t axis, std::uint64_t extent) {
    const StoredTensor* tensor = archive->find(name);
    if (tensor == nullptr || tensor->shape.size() != 2 || tensor->shape[axis] != extent)
      throw Error(ErrorCode::kInput, file.string() + ": tensor " + name,
                  "found " + (tensor == nullptr ? "none" : Json(tensor->shape).dump()) + ", expected " +
                      (axis == 0 ? "rows" : "columns") + ": " + std::to_string(extent));
  };
  const auto expect_pair = [&](const std::string& prefix, const std::string& part, std::uint64_t rows,
                               std::uint64_t r) {
    expect(prefix + "up" + part, 0, rows);
    expect(prefix + "up" + part, 1, r);
    expect(prefix + "down" + part, 0, r);
  };
  for (std::size_t n = 0; n < layers; ++n) {
    const std::string prefix = "layers." + std::to_string(parameters.at("layers").at(n).unsigned_integer()) + ".";
    if (joint) {
      expect_pair(prefix, "", keys + values, rank);
      continue;
    }
    const JsonCursor ranks = parameters.at("ranks").at(n);
    if (ranks.at(0).unsigned_integer() + ranks.at(1).unsigned_integer() != rank)
      ranks.fail("two ranks that add to d_ckv, " + std::to_string(rank));
    expect_pair(prefix, "_k", keys, ranks.at(0).unsigned_integer());
    expect_pair(prefix, "_v", values, ranks.at(1).unsigned_integer());
  }
}

/// @throws Error kInput as the method's own reader, which knows more than the schema says.
void check_parameters(const CacheMethod& method, const JsonCursor& root, const std::string& where) {
  constexpr std::uint64_t kMostLayers = 1 << 16;
  const JsonCursor values = root.at("parameters");
  (void)values.keys();  // an object
  Parameters parameters({{values.value(), where + ": /parameters/", ErrorCode::kInput}},
                        root.at("model").at("layers").unsigned_integer(kMostLayers));
  (void)make_cache(method, parameters, {});
}

/// Of what a config says beside a method's parameters.
struct MethodCheck {
  std::string_view method;
  void (*lists)(const Json& config, const std::string& where);
  void (*files)(const Json& config, const std::filesystem::path& path);  // nullptr: it has none
};
constexpr std::array kMethodChecks{MethodCheck{"faedkv", check_faedkv, nullptr},
                                   MethodCheck{"elitekv", check_elitekv, check_factors}};

}  // namespace

Json read_config(const std::filesystem::path& path) {
  const std::string where = path.string();
  Json config = parse_json(read_text_file(path, kMaximumBytes), where);
  const JsonCursor root(config, where);
  if (root.at("format").string() != "kvspectrum-config") root.at("format").fail("\"kvspectrum-config\"");
  const std::int64_t version = root.at("version").integer(1);
  if (version > kVersion)
    throw Error(ErrorCode::kUnsupported, where + ": /version",
                "found " + std::to_string(version) + ", expected at most " + std::to_string(kVersion));
  const std::string& name = root.at("method").string();
  if (const CacheMethod* const method = find_cache_method(name)) check_parameters(*method, root, where);
  check_schema(config, where);
  const auto row = std::ranges::find(kMethodChecks, name, &MethodCheck::method);
  if (row != kMethodChecks.end()) row->lists(config, where);
  check_files(config, path);
  if (row != kMethodChecks.end() && row->files != nullptr) row->files(config, path);
  return config;
}

}  // namespace kvs
