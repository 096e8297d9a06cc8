#include "policy/parameters.h"

#include <algorithm>
#include <charconv>

namespace kvs {
namespace {

/// "a, b, c"
std::string joined(const auto& words) {
  std::string list;
  for (const auto& word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

Json value_of(std::string_view text) {
  std::int64_t integer = 0;
  double real = 0;
  const char* const end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, integer); error == std::errc() && rest == end)
    return integer;
  if (const auto [rest, error] = std::from_chars(text.data(), end, real); error == std::errc() && rest == end)
    return real;
  return text;
}

}  // namespace

Json parameters_of(std::span<const std::string> settings) {
  Json parameters = Json::object();
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    if (equals == std::string::npos || name.empty() || equals + 1 == setting.size())
      throw Error(ErrorCode::kUsage, "--set", "found '" + setting + "', expected NAME=VALUE");
    if (parameters.contains(name))
      throw Error(ErrorCode::kUsage, "--set", "found '" + name + "' twice, expected each name once");
    std::string_view text = std::string_view(setting).substr(equals + 1);
    if (text.find(',') == std::string_view::npos) {
      parameters[name] = value_of(text);
      continue;
    }
    Json& list = parameters[name] = Json::array();
    for (std::size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(std::min(text.size(), comma + 1))) {
      comma = text.find(',');
      list.push_back(value_of(text.substr(0, comma)));
    }
  }
  return parameters;
}

void Parameters::refuse(std::string_view name, const std::string& problem) const {
  throw Error(code_, where_ + (code_ == ErrorCode::kUsage ? " " : "/") + std::string(name), problem);
}

const Json* Parameters::find(std::string_view name) {
  asked_.emplace(name);
  const auto found = values_->find(name);
  if (found == values_->end() || found->is_null()) return nullptr;
  if (!found->is_array()) return &*found;
  if (found->size() != layers_)
    refuse(name, "found a list of " + std::to_string(found->size()) + ", expected a value for each of " +
                     std::to_string(layers_) + " layers");
  return &(*found)[layer_];
}

std::size_t Parameters::count(std::string_view name, std::size_t standard, std::size_t least) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const Json* const value = find(name);
  if (value == nullptr && standard >= least) return standard;
  if (value == nullptr || !value->is_number_integer() || *value < static_cast<std::int64_t>(least) || *value > kMost)
    refuse(name, "found " + (value == nullptr ? "nothing" : describe_json(*value)) +
                     ", expected a whole number of at least " + std::to_string(least));
  return value->get<std::size_t>();
}

double Parameters::real(std::string_view name, double standard, double least, double most) {
  const Json* const value = find(name);
  if (value == nullptr) return standard;
  const bool inside = value->is_number() && value->get<double>() >= least && value->get<double>() <= most;
  if (!inside)
    refuse(name, "found " + describe_json(*value) + ", expected a number from " + Json(least).dump() + " to " +
                     Json(most).dump());
  return value->get<double>();
}

bool Parameters::on_off(std::string_view name, bool standard) {
  const Json* const value = find(name);
  if (value == nullptr) return standard;
  if (*value != "on" && *value != "off") refuse(name, "found " + describe_json(*value) + ", expected on or off");
  return *value == "on";
}

std::vector<std::size_t> Parameters::indices(std::string_view name, std::vector<std::size_t> standard,
                                             std::size_t limit) {
  asked_.emplace(name);
  const auto found = values_->find(name);
  if (found == values_->end() || found->is_null()) return standard;
  if (*found == "none") return {};
  const Json list = found->is_array() ? *found : Json::array({*found});
  std::vector<std::size_t> numbers;
  for (const Json& value : list) {
    if (!value.is_number_integer() || value < 0 || value >= limit)
      refuse(name,
             "found " + describe_json(*found) + ", expected numbers below " + std::to_string(limit) + ", or none");
    numbers.push_back(value.get<std::size_t>());
  }
  return numbers;
}

std::size_t Parameters::choice(std::string_view name, std::span<const std::string_view> words) {
  const Json* const value = find(name);
  if (value == nullptr) return 0;
  const auto found = std::ranges::find_if(words, [&](std::string_view word) { return *value == word; });
  if (found == words.end()) refuse(name, "found " + describe_json(*value) + ", expected one of " + joined(words));
  return static_cast<std::size_t>(found - words.begin());
}

void Parameters::check_known() const {
  for (const auto& [name, value] : values_->items()) {
    if (asked_.contains(name)) continue;
    refuse(name,
           "found a parameter that the method does not have, expected " + (asked_.empty() ? "none" : joined(asked_)));
  }
}

}  // namespace kvs
