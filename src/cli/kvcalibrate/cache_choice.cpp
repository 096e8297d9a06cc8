#include "cli/kvcalibrate/cache_choice.h"

#include <memory>
#include <utility>

#include "cli/common/methods.h"
#include "core/error.h"
#include "eval/elite_config.h"
#include "export/config.h"

namespace kvs {
namespace {

std::string method_names() {
  std::string names;
  for (const CacheMethod* method : cache_methods()) names += (names.empty() ? "" : ", ") + std::string(method->name);
  return names;
}

Cache make(const CacheMethod& method, const Json& values, const ModelConfig& config) {
  Parameters parameters(values, "--set", ErrorCode::kUsage, config.layers);
  return make_cache(method, parameters, config.windows);
}

}  // namespace

void add_cache_options(OptionTable& table) {
  table.value("config", "FILE", "a config made by kvcalibrate (elitekv)")
      .value("method", "NAME", "a method of the list above")
      .list("set", "NAME=VALUE", "parameters of --method; may repeat");
}

std::string cache_method_lines() {
  std::string lines = "Methods and what --set takes (a list gives a value for each layer):\n";
  for (const CacheMethod* method : cache_methods())
    lines += "  " + std::string(method->name) + (method->parameters.empty() ? "" : ": ") +
             std::string(method->parameters) + "\n";
  return lines;
}

CacheChoice choose_cache(const Options& options, const ModelSource& source, const char* standard) {
  const bool named = options.has("method"), has_config = options.has("config");
  if ((named && has_config) || (!named && !has_config && standard == nullptr))
    throw Error(ErrorCode::kUsage, "--config", "expected either --config or --method");
  CacheChoice choice;
  if (!has_config) {
    choice.name = named ? options.text("method") : standard;
    choice.method = find_cache_method(choice.name);
    if (choice.method == nullptr)
      throw Error(ErrorCode::kUsage, "--method", "found '" + choice.name + "', expected one of " + method_names());
    choice.parameters = parameters_of(options.list("set"));
    (void)make(*choice.method, choice.parameters, source.config());  // refuses what is wrong in them
    return choice;
  }
  if (options.has("set")) throw Error(ErrorCode::kUsage, "--set", "found together with --config, expected --method");
  const std::filesystem::path path = options.text("config");
  const Json config = read_config(path);
  check_config_model(config, path, source.config(), source.sha256());
  choice.name = config.at("method").get<std::string>();
  if (choice.name != "elitekv")
    throw Error(ErrorCode::kUnsupported, path.string() + ": /method", "found " + choice.name + ", expected elitekv");
  require_method(config.at("files").empty() ? MethodId::kEvalElite : MethodId::kFactors, source.config());
  choice.elite = load_elite_config(config, path, source);
  return choice;
}

std::function<Cache()> cache_maker(CacheChoice choice, const ModelSession& session, std::size_t tokens) {
  const ModelConfig& config = session.config();
  if (choice.method != nullptr)
    return [choice = std::move(choice), &config] { return make(*choice.method, choice.parameters, config); };
  const auto caches = std::make_shared<EliteCaches>(*session.backend, config, choice.elite, tokens);
  return [caches] { return caches->make(); };
}

}  // namespace kvs
