#include <algorithm>

#include "core/error.h"
#include "export/config.h"
#include "export/config_lists.h"
#include "export/elite_config.h"
#include "export/schema_check.h"
#include "export/transform_config.h"
#include "io/digest.h"
#include "io/file.h"
#include "policy/methods.h"

namespace kvs {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMaximumBytes = 64UL << 20;

void check_faedkv(const Json& config, const std::string& where) {
  const JsonCursor calibration = JsonCursor(config, where).at("calibration");
  if (!calibration.has("ablation")) return;
  const std::size_t layers = config_layers(JsonCursor(config, where)).size();
  const auto chunks = JsonCursor(config, where).at("parameters").at("chunks").unsigned_integer();
  const JsonCursor ablation = calibration.at("ablation");
  for (const char* member : {"delta", "interval", "documents"}) {
    if (!ablation.has(member)) continue;  // documents: races only; the schema asks for the others
    expect_length(ablation.at(member), layers, "layers");
    for (std::size_t n = 0; n < layers; ++n) expect_length(ablation.at(member).at(n), chunks, "chunks");
  }
  if (!ablation.has("undecided")) return;
  expect_length(ablation.at("undecided"), layers, "layers");
  for (std::size_t n = 0; n < layers; ++n) check_index_list(ablation.at("undecided").at(n), chunks);
}

void check_elitekv(const Json& config, const std::string& where) { (void)read_elite_config(config, where); }

void check_transform(const Json& config, const std::string& where) { (void)read_transform_config(config, where); }

void check_transform_tensors(const Json& config, const std::filesystem::path& path) {
  (void)read_transform_layers(config, path);
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

/// @throws Error kInput as the method's own reader, which knows more than the schema says.
void check_parameters(const CacheMethod& method, const JsonCursor& root, const std::string& where) {
  constexpr std::uint64_t kMost = 1 << 16;
  const JsonCursor model = root.at("model");
  const JsonCursor values = root.at("parameters");
  (void)values.keys();  // an object
  Parameters parameters({{values.value(), where + ": /parameters/", ErrorCode::kInput}},
                        model.at("layers").unsigned_integer(kMost));
  (void)make_cache(method, parameters,
                   {.kv_heads = model.at("kv_heads").unsigned_integer(kMost),
                    .head_dim = model.at("head_dim").unsigned_integer(kMost)});
}

/// Of what a config says beside a method's parameters.
struct MethodCheck {
  std::string_view method;
  void (*lists)(const Json& config, const std::string& where);
  void (*files)(const Json& config, const std::filesystem::path& path);  // nullptr: it has none
};
constexpr std::array kMethodChecks{MethodCheck{"faedkv", check_faedkv, nullptr},
                                   MethodCheck{"elitekv", check_elitekv, check_elite_factors},
                                   MethodCheck{"transform", check_transform, check_transform_tensors}};

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
