#include <algorithm>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "core/error.h"
#include "embedded/config_schema.h"
#include "export/config.h"
#include "io/digest.h"
#include "io/file.h"

namespace kvs {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMaximumBytes = 64UL << 20;

[[noreturn]] void refuse(const std::string& where, const std::string& pointer, const std::string& problem) {
  throw Error(ErrorCode::kInput, where + ": " + (pointer.empty() ? "/" : pointer), problem);
}

/// valijson names a place as "<root>[member][index]"; messages use JSON pointers.
std::string pointer_of(const std::vector<std::string>& context) {
  std::string pointer;
  for (const std::string& part : context) {
    if (part == "<root>") continue;
    const bool bracketed = part.size() > 1 && part.front() == '[' && part.back() == ']';
    pointer += '/' + (bracketed ? part.substr(1, part.size() - 2) : part);
  }
  return pointer;
}

void check_schema(const Json& config, const std::string& where) {
  // valijson's adapter takes nlohmann::json; both documents are small.
  const auto schema_document = nlohmann::json::parse(config_schema());
  const auto target = nlohmann::json::parse(config.dump());
  valijson::Schema schema;
  valijson::SchemaParser parser;
  const valijson::adapters::NlohmannJsonAdapter schema_adapter(schema_document);
  parser.populateSchema(schema_adapter, schema);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(target), &results)) return;
  // The most specific complaint is the one with the longest path.
  valijson::ValidationResults::Error error, deepest;
  while (results.popError(error))
    if (deepest.description.empty() || error.context.size() > deepest.context.size()) deepest = error;
  refuse(where, pointer_of(deepest.context), deepest.description);
}

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
  for (const char* member : {"delta", "interval"}) {
    expect_length(ablation.at(member), layers, "layers");
    for (std::size_t n = 0; n < layers; ++n) expect_length(ablation.at(member).at(n), chunks, "chunks");
  }
}

void check_elitekv(const Json& config, const std::string& where) {
  const JsonCursor root(config, where), parameters = root.at("parameters");
  const std::size_t layers = layers_of(config, where).size();
  const auto chunks = root.at("model").at("head_dim").unsigned_integer() / 2;
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

struct MethodCheck {
  std::string_view method;
  void (*check)(const Json& config, const std::string& where);
};
constexpr std::array kMethodChecks{MethodCheck{"faedkv", check_faedkv}, MethodCheck{"elitekv", check_elitekv}};

}  // namespace

std::string_view config_schema() noexcept { return embedded::config_schema; }

Json read_config(const std::filesystem::path& path) {
  const std::string where = path.string();
  Json config = parse_json(read_text_file(path, kMaximumBytes), where);
  const JsonCursor root(config, where);
  if (root.at("format").string() != "kvspectrum-config") root.at("format").fail("\"kvspectrum-config\"");
  const std::int64_t version = root.at("version").integer(1);
  if (version > kVersion)
    throw Error(ErrorCode::kUnsupported, where + ": /version",
                "found " + std::to_string(version) + ", expected at most " + std::to_string(kVersion));
  check_schema(config, where);
  const std::string& method = root.at("method").string();
  for (const MethodCheck& row : kMethodChecks)
    if (row.method == method) row.check(config, where);
  check_files(config, path);
  return config;
}

}  // namespace kvs
