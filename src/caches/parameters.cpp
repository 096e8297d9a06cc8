// SPDX-License-Identifier: Apache-2.0
#include "caches/parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "caches/old_parameters.h"
#include "core/nearest.h"

namespace kvs::inline caches {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;  // largest count

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

/// Splits `text`, which must outlive the parts; returns at least one.
std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(std::min(text.size(), end + 1))) {
    end = text.find(separator);
    found.push_back(text.substr(0, end));
  }
  return found;
}

/// Parses a number, a word, or a comma-separated list of them, in which 4-7 is four numbers.
Json values_of(std::string_view text) {
  constexpr std::int64_t kMaxOfARange = 65536;
  const auto words = parts(text, ',');
  Json list = Json::array();
  bool range = false;
  for (const std::string_view word : words) {
    const auto ends = parts(word, '-');
    const Json first = value_of(ends.front()), last = value_of(ends.back());
    if (ends.size() == 2 && first.is_number_integer() && last.is_number_integer() && first <= last &&
        last.get<std::int64_t>() - first.get<std::int64_t>() < kMaxOfARange) {
      range = true;
      for (auto number = first.get<std::int64_t>(); number <= last; ++number) list.push_back(number);
    } else {
      list.push_back(value_of(word));
    }
  }
  return words.size() == 1 && !range ? list.front() : list;
}

}  // namespace

Json parse_settings(std::span<const std::string> settings, const std::string& where) {
  Json parameters = Json::object();
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    if (equals == std::string::npos || name.empty() || equals + 1 == setting.size())
      throw Error(ErrorCode::kUsage, where, "found '" + setting + "', expected NAME=VALUE");
    if (parameters.contains(name))
      throw Error(ErrorCode::kUsage, where, "found '" + name + "' twice, expected each name once");
    const std::string_view text = std::string_view(setting).substr(equals + 1);
    const auto layers = parts(text, '/');
    if (layers.size() == 1) {
      parameters[name] = values_of(text);
      continue;
    }
    Json& lists = parameters[name] = Json::array();
    for (const std::string_view layer : layers) {
      const Json values = values_of(layer);
      lists.push_back(values.is_array() ? values : Json::array({values}));
    }
  }
  rename_old_parameters(parameters, where, ErrorCode::kUsage);
  return parameters;
}

std::vector<std::size_t> Parameters::all_below(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

Parameters::Parameters(std::vector<ParameterSource> sources, const CacheShape& shape)
    : Parameters(std::move(sources), shape.layers.size(), [&] {
        std::vector<std::size_t> cached = all_below(shape.layers.size());
        std::erase_if(cached, [&](std::size_t layer) { return !shape.layers[layer].has_cache(); });
        return cached;
      }()) {}

Parameters::Parameters(std::vector<ParameterSource> sources, std::size_t layers, std::vector<std::size_t> selectable)
    : sources_(std::move(sources)), layers_(layers), chosen_(selectable) {
  select_all();
  chosen_ = indices("layers", "layers that the method applies to (default: all)", chosen_, layers);
  if (chosen_.empty() || !std::ranges::is_sorted(chosen_, std::less_equal()))
    refuse("layers", "found " + Json(chosen_).dump() + ", expected some layers, ascending, each once");
  for (const std::size_t layer : chosen_)
    if (!std::ranges::binary_search(selectable, layer))
      refuse("layers", "found " + std::to_string(layer) + ", which has no KV cache of its own, expected other layers");
  per_layer_ = true;
}

Parameters Parameters::description(std::size_t layers) {
  Parameters parameters({{Json::object(), "", ErrorCode::kInternal}}, layers);
  parameters.describing_ = true;
  return parameters;
}

bool Parameters::select(std::size_t layer) {
  const auto found = std::ranges::find(chosen_, layer);
  position_ = static_cast<std::size_t>(found - chosen_.begin());
  return found != chosen_.end();
}

void Parameters::refuse(std::string_view name, const std::string& problem) const {
  const auto has = [&](const ParameterSource& source) { return source.values.contains(name); };
  const auto found = std::find_if(sources_.rbegin(), sources_.rend(), has);
  const ParameterSource& culprit = found == sources_.rend() ? sources_.front() : *found;
  throw Error(culprit.code, culprit.where + std::string(name), problem);
}

void Parameters::note(ParameterSpec spec) {
  spec.per_layer = per_layer_;
  if (std::ranges::find(specs_, spec.name, &ParameterSpec::name) == specs_.end()) specs_.push_back(std::move(spec));
}

void Parameters::give(std::string_view name, Json value) {
  std::vector<Json>& values = given_[std::string(name)];
  values.resize(per_layer_ ? chosen_.size() : 1);
  values[per_layer_ ? position_ : 0] = std::move(value);
}

const Json* Parameters::find(std::string_view name, bool whole_lists) const {
  const Json* value = nullptr;
  for (const ParameterSource& source : sources_)
    if (const auto found = source.values.find(name); found != source.values.end() && !found->is_null()) value = &*found;
  if (value == nullptr || !value->is_array() || whole_lists) return value;
  if (!per_layer_) refuse(name, "found a list, expected one value for all layers");
  if (value->size() != chosen_.size())
    refuse(name, "found a list of " + std::to_string(value->size()) + ", expected a value for each of " +
                     std::to_string(chosen_.size()) + " layers");
  return &(*value)[position_];
}

std::size_t Parameters::count(std::string_view name, std::string_view help, std::size_t default_value,
                              std::size_t least, std::size_t more) {
  note({.name = std::string(name),
        .help = std::string(help),
        .kind = ParameterSpec::Kind::kCount,
        .default_value = default_value < least ? Json() : Json(default_value),
        .least = static_cast<double>(least),
        .most = static_cast<double>(kMaxCount)});
  least += more;
  const Json* const value = find(name);
  const bool missing = value == nullptr && default_value < least && !describing_;
  if (missing || (value != nullptr &&
                  (!value->is_number_integer() || *value < static_cast<std::int64_t>(least) || *value > kMaxCount)))
    refuse(name, "found " + (missing ? "nothing" : describe_json(*value)) + ", expected a whole number of at least " +
                     std::to_string(least) +
                     (missing || *value < kMaxCount ? "" : " and at most " + std::to_string(kMaxCount)));
  const auto result = value == nullptr ? std::max(default_value, least) : value->get<std::size_t>();
  give(name, result);
  return result;
}

double Parameters::real(std::string_view name, std::string_view help, double default_value, double least, double most) {
  note({.name = std::string(name),
        .help = std::string(help),
        .kind = ParameterSpec::Kind::kReal,
        .default_value = default_value,
        .least = least,
        .most = most});
  const Json* const value = find(name);
  const bool inside =
      value == nullptr || (value->is_number() && value->get<double>() >= least && value->get<double>() <= most);
  if (!inside)
    refuse(name, "found " + describe_json(*value) + ", expected a number from " + Json(least).dump() + " to " +
                     Json(most).dump());
  const double result = value == nullptr ? default_value : value->get<double>();
  give(name, result);
  return result;
}

std::vector<double> Parameters::values(std::string_view name, std::string_view help, double default_value, double least,
                                       double most, std::size_t heads) {
  note({.name = std::string(name),
        .help = std::string(help),
        .kind = ParameterSpec::Kind::kReals,
        .default_value = default_value,
        .least = least,
        .most = most});
  const Json* const value = find(name);
  const Json found = value == nullptr ? Json(default_value) : *value;
  const Json list = found.is_array() ? found : Json(std::vector<Json>(heads, found));
  const bool inside = list.size() == heads && std::ranges::all_of(list, [&](const Json& one) {
                        return one.is_number() && one.get<double>() >= least && one.get<double>() <= most;
                      });
  if (!inside)
    refuse(name, "found " + describe_json(found) + ", expected a number from " + Json(least).dump() + " to " +
                     Json(most).dump() + ", or one for each of " + std::to_string(heads) + " KV heads");
  give(name, found);
  return list.get<std::vector<double>>();
}

bool Parameters::on_off(std::string_view name, std::string_view help, bool default_value) {
  static constexpr std::string_view kOnFirst[] = {"on", "off"}, kOffFirst[] = {"off", "on"};
  return (choice(name, help, default_value ? kOnFirst : kOffFirst) == 0) == default_value;
}

std::vector<std::size_t> Parameters::indices(std::string_view name, std::string_view help,
                                             std::vector<std::size_t> default_value, std::size_t limit,
                                             std::string_view default_from) {
  note({.name = std::string(name),
        .help = std::string(help),
        .kind = ParameterSpec::Kind::kIndices,
        .default_value = default_value,
        .default_from = default_from});
  const Json* found = find(name, true);
  std::vector<std::size_t> numbers = found == nullptr ? std::move(default_value) : std::vector<std::size_t>();
  if (found != nullptr && found->is_array() && !found->empty() && found->front().is_array()) found = find(name);
  if (found != nullptr && *found != "none") {
    for (const Json& value : found->is_array() ? *found : Json::array({*found})) {
      if (!value.is_number_integer() || value < 0 || value >= limit)
        refuse(name,
               "found " + describe_json(*found) + ", expected numbers below " + std::to_string(limit) + ", or none");
      const auto number = value.get<std::size_t>();
      if (std::ranges::find(numbers, number) != numbers.end())
        refuse(name, "found " + std::to_string(number) + " twice, expected each number once");
      numbers.push_back(number);
    }
  }
  give(name, numbers);
  return numbers;
}

std::size_t Parameters::choice(std::string_view name, std::string_view help, std::span<const std::string_view> words) {
  note({.name = std::string(name),
        .help = std::string(help),
        .kind = ParameterSpec::Kind::kWord,
        .default_value = words.front(),
        .words = {words.begin(), words.end()}});
  const Json* const value = find(name);
  const auto found = value == nullptr
                         ? words.begin()
                         : std::ranges::find_if(words, [&](std::string_view word) { return *value == word; });
  if (found == words.end())
    refuse(name,
           "found " + describe_json(*value) + ", expected " + (words.size() > 1 ? "one of " : "") + joined(words));
  give(name, *found);
  return static_cast<std::size_t>(found - words.begin());
}

void Parameters::check_known() const {
  std::vector<std::string> known;
  for (const ParameterSpec& spec : specs_) known.push_back(spec.name);
  for (const ParameterSource& source : sources_)
    for (const auto& [name, value] : source.values.items())
      if (std::ranges::find(known, name) == known.end())
        throw Error(source.code, source.where + name,
                    "found a parameter that the method does not have, expected one of " + joined(known) +
                        did_you_mean(name, known));
}

Json Parameters::resolved() const {
  Json all = Json::object();
  for (const ParameterSpec& spec : specs_) {
    const std::vector<Json>& values = given_.at(spec.name);
    // A single list for heads would be read as a list for layers.
    const bool of_heads = spec.kind == ParameterSpec::Kind::kReals && !values.empty() && values.front().is_array();
    const bool same = std::ranges::all_of(values, [&](const Json& value) { return value == values.front(); });
    all[spec.name] = same && !values.empty() && !of_heads ? values.front() : Json(values);
  }
  return all;
}

std::size_t shared_count(const Json& settings, const std::string& name, std::size_t default_value) {
  const auto found = settings.find(name);
  if (found == settings.end()) return default_value;
  std::string expected;
  if (!found->is_number_integer())
    expected = "one whole number for all layers where a budget sets the size";
  else if (*found < 0 || *found > kMaxCount)
    expected = "a whole number from 0 to " + std::to_string(kMaxCount);
  if (!expected.empty())
    throw Error(ErrorCode::kUsage, name, "found " + describe_json(*found) + ", expected " + expected);
  return found->get<std::size_t>();
}

Json cache_size_for_share(double share, std::size_t tokens, const Json&) {
  return {{"cache_size", std::llround(share * static_cast<double>(tokens))}};
}

}  // namespace kvs::inline caches
