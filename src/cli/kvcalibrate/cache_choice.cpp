#include "cli/kvcalibrate/cache_choice.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "calibrate/config/config.h"
#include "calibrate/elitekv/caches.h"
#include "calibrate/transform/caches.h"
#include "calibrate/transform/config.h"
#include "cli/common/methods.h"
#include "core/error.h"
#include "core/nearest.h"
#include "model/cache_shape.h"

namespace kvs {
namespace {

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const CacheMethod* method : cache_methods()) names.emplace_back(method->name);
  return names;
}

Cache make(const CacheChoice& choice, const ModelConfig& model) {
  Parameters parameters(choice.parameters, model.layers);
  return make_cache(*choice.method, parameters, cache_shape(model));
}

/// How the layers of an elitekv config hold their rows: all that may be set beside it.
std::vector<StateStore> elite_stores(const CacheChoice& choice, const ModelConfig& model) {
  Parameters parameters(choice.parameters, model.layers);
  std::vector<StateStore> stores;
  for (std::size_t layer = 0; layer < model.layers; ++layer)
    stores.push_back(parameters.select(layer) ? read_row_store(parameters, layer) : StateStore{});
  parameters.check_known();
  return stores;
}

/// " cache_size sinks=4 rope=pre|post": a parameter with its words or its standard.
std::string parameter_words(const ParameterSpec& spec) {
  if (spec.kind == ParameterSpec::Kind::kIndices) return ' ' + spec.name + "=N,…";
  if (spec.standard.is_null()) return ' ' + spec.name + "=N";
  std::string values;
  for (const std::string& word : spec.words) values += (values.empty() ? "" : "|") + word;
  return ' ' + spec.name + '=' + (values.empty() ? spec.standard.dump() : values);
}

/// What the config of `path` asks for.
CacheChoice configured(const std::filesystem::path& path, const ModelSource& source) {
  const Json config = read_config(path);
  check_config_model(config, path, source);
  CacheChoice choice;
  choice.name = config.at("method").get<std::string>();
  choice.method = find_cache_method(choice.name);
  choice.calibrated = config.at("calibration").at("documents") > 0;
  if (choice.method != nullptr) {
    choice.parameters.push_back({config.at("parameters"), path.string() + ": /parameters/", ErrorCode::kInput});
    return choice;
  }
  if (choice.name == "transform") {
    choice.transform = read_transform_layers(config, path);
    return choice;
  }
  if (choice.name != "elitekv")
    throw Error(ErrorCode::kUnsupported, path.string() + ": /method",
                "found " + choice.name + ", expected elitekv, transform, " + listed(method_names()));
  require_method(config.at("files").empty() ? MethodId::kEvalElite : MethodId::kFactors, source.config());
  choice.elite = load_elite_config(config, path, source);
  const Json& parameters = config.at("parameters");
  Json rows{{"layers", parameters.at("layers")}};
  if (parameters.contains("store")) rows["store"] = parameters.at("store");
  choice.parameters.push_back({std::move(rows), path.string() + ": /parameters/", ErrorCode::kInput});
  return choice;
}

/// Refuses settings that have no effect: the layers of an elitekv config are those that were calibrated, so `layers`
/// can only say which of them `store` holds; a transform config is measured as it is.
void refuse_settings(const CacheChoice& choice, const Json& settings) {
  if (choice.method != nullptr || settings.empty()) return;
  const std::string with = "a --config of " + choice.name;
  if (!choice.transform.empty())
    throw Error(ErrorCode::kUsage, "--set " + settings.items().begin().key(), "cannot be combined with " + with);
  if (settings.contains("layers") && settings.size() == 1)
    throw Error(ErrorCode::kUsage, "--set layers", "needs --set store=TYPE beside " + with);
}

CacheChoice named(const std::string& name, const std::string& option) {
  CacheChoice choice{.name = name, .method = find_cache_method(name)};
  if (name == "elitekv" || name == "transform")
    throw Error(ErrorCode::kUsage, option,
                "found " + name + ", which --config takes: kvcalibrate " + name + " makes one");
  if (choice.method == nullptr)
    throw Error(ErrorCode::kUsage, option,
                "found '" + name + "', expected one of " + listed(method_names()) + did_you_mean(name, method_names()));
  return choice;
}

struct WordsOfCache {
  CacheChoice choice;
  Json settings;
};

/// "METHOD [NAME=VALUE …]"
WordsOfCache words_of_cache(const std::string& text, const std::string& option) {
  std::istringstream stream(text);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  CacheChoice choice = named(words.empty() ? "" : words.front(), option);
  Json settings = parse_settings(std::span(words).subspan(words.empty() ? 0 : 1), option);
  return {std::move(choice), std::move(settings)};
}

/// Refuses what needs neither a model nor a config to be seen.
void check_cache_options(const Options& options, const char* standard) {
  static constexpr std::string_view kConfig[] = {"config"};
  const bool has_method = options.has("method");
  if (has_method) refuse_options(options, kConfig, "--method");
  if (!has_method && !options.has("config") && standard == nullptr)
    throw Error(ErrorCode::kUsage, "missing option --method NAME or --config FILE", "see --help");
  const Json settings = parse_settings(options.list("set"), "--set");
  if (options.has("config")) return;
  const CacheMethod& method = *named(has_method ? options.text("method") : standard, "--method").method;
  check_settings(method, settings, "--set");
  static constexpr std::string_view kOfQuestions[] = {"prefix"};
  check_complete(
      method, settings, "--set",
      options.has("task") ? std::span<const std::string_view>(kOfQuestions) : std::span<const std::string_view>());
}

/// Refuses what is wrong in a choice's parameters.
void check(const CacheChoice& choice, const ModelSource& source) {
  if (!choice.transform.empty()) {
    Parameters(choice.parameters, source.config().layers).check_known();
  } else if (choice.method == nullptr) {
    (void)elite_stores(choice, source.config());
  } else {
    (void)make(choice, source.config());
  }
}

}  // namespace

void check_cache_words(const std::string& text, const std::string& option) {
  const WordsOfCache words = words_of_cache(text, option);
  check_settings(*words.choice.method, words.settings, option);
  check_complete(*words.choice.method, words.settings, option);
}

void add_cache_options(OptionTable& table, const char* standard) {
  table.value("config", "FILE", "a config of a method of the list above, of elitekv or of transform")
      .value("method", "NAME", "a method of the list above")
      .list("set", "NAME=VALUE", "parameters of --method, or instead of a --config's; may repeat")
      .check([standard](const Options& options) { check_cache_options(options, standard); });
  add_other_weights(table);
}

std::string cache_method_lines() {
  std::string lines = "Methods and what --set takes (a list gives a value for each layer):\n", shared;
  std::set<std::string> names;  // of what all methods share: the full cache has nothing else
  for (const ParameterSpec& spec : describe(*find_cache_method("full"))) {
    shared += parameter_words(spec);
    names.insert(spec.name);
  }
  for (const CacheMethod* const method : cache_methods()) {
    std::string own;
    for (const ParameterSpec& spec : describe(*method))
      if (!names.contains(spec.name)) own += parameter_words(spec);
    lines += "  " + std::string(method->name) + (own.empty() ? "" : ":") + own + '\n';
  }
  return lines + "  all of them:" + shared + '\n';
}

bool CacheChoice::has_store() const {
  const Json all = given();
  return std::ranges::any_of(std::array{"store", "store_k", "store_v"}, [&](const char* side) {
    const Json value = all.value(side, Json("none"));
    return value != "none" && value != "store";
  });
}

Json CacheChoice::given() const {
  Json all = Json::object();
  for (const ParameterSource& source : parameters) all.update(source.values);
  if (method == nullptr) all.erase("layers");  // a config's, no choice
  return all;
}

Json CacheChoice::resolved(const ModelConfig& model) const {
  Parameters reader(parameters, model.layers);
  (void)make_cache(*method, reader, cache_shape(model));
  return reader.resolved();
}

CacheChoice choose_cache(const Options& options, const ModelSource& source, const char* standard, const Json& assumed) {
  CacheChoice choice = options.has("config")
                           ? configured(options.text("config"), source)
                           : named(options.has("method") ? options.text("method") : standard, "--method");
  Json settings = parse_settings(options.list("set"), "--set");
  refuse_settings(choice, settings);
  choice.parameters.push_back({std::move(settings), "--set ", ErrorCode::kUsage});
  CacheChoice tried = choice;
  if (choice.method != nullptr) tried.parameters.push_back({assumed, "", ErrorCode::kInternal});
  check(tried, source);
  return choice;
}

CacheChoice cache_of_words(const std::string& text, const std::string& option, const ModelSource& source) {
  auto [choice, settings] = words_of_cache(text, option);
  choice.parameters.push_back({std::move(settings), option + " ", ErrorCode::kUsage});
  check(choice, source);
  return choice;
}

CacheChoice cache_of_config(const std::filesystem::path& path, const ModelSource& source) {
  CacheChoice choice = configured(path, source);
  choice.parameters.push_back({Json::object(), "", ErrorCode::kInternal});  // of an elitekv config: none
  check(choice, source);
  return choice;
}

std::size_t cache_positions(const CacheChoice& choice, const ModelConfig& model, std::size_t tokens) {
  return choice.method == nullptr ? tokens : make(choice, model).positions(tokens);
}

std::function<Cache()> cache_maker(CacheChoice choice, const ModelSession& session, std::size_t tokens) {
  const ModelConfig& config = session.config();
  if (choice.method != nullptr) return [choice = std::move(choice), &config] { return make(choice, config); };
  if (!choice.transform.empty()) {
    const auto caches = std::make_shared<TransformCaches>(*session.backend, config, choice.transform);
    return [caches] { return caches->make(); };
  }
  const auto caches = std::make_shared<EliteCaches>(*session.backend, config, choice.elite, tokens);
  return [caches, stores = elite_stores(choice, config)] { return caches->make(stores); };
}

}  // namespace kvs
