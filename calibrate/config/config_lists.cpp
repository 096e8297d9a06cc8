// SPDX-License-Identifier: Apache-2.0
#include "calibrate/config/config_lists.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "calibrate/config/config.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// A place in the config that a rule matches.
struct Match {
  JsonCursor place;
  std::optional<std::size_t> position = std::nullopt;  // index that replaces the rule's first *: one of the layers
};

std::vector<std::string> parts_of(const std::string& place) {
  std::vector<std::string> parts;
  for (std::size_t from = 1, to = 0; to != std::string::npos; from = to + 1) {
    to = place.find('/', from);
    parts.push_back(place.substr(from, to - from));
  }
  return parts;
}

/// Returns the entries of a list, or the value itself.
std::vector<JsonCursor> entries_of(const JsonCursor& place) {
  if (!place.value().is_array()) return {place};
  std::vector<JsonCursor> entries;
  for (std::size_t n = 0; n < place.array_size(); ++n) entries.push_back(place.at(n));
  return entries;
}

std::size_t largest_of(const Json& value) {
  if (!value.is_array()) return value.get<std::size_t>();
  std::size_t most = 0;
  for (const Json& one : value) most = std::max(most, one.get<std::size_t>());
  return most;
}

class ListRules {
 public:
  ListRules(const Json& config, std::string where)
      : config_(config), where_(std::move(where)), layers_(value_of("/parameters/layers")) {
    if (layers_.is_number()) layers_ = Json::array({layers_});
  }

  void check(const Json& rule) const {
    if (rule.contains("if"))
      for (const auto& [place, value] : rule.at("if").items())
        if (const Json* found = find(place); found == nullptr || *found != value) return;
    match(rule, parts_of(rule.at("at").get<std::string>()), {JsonCursor(config_, where_)});
  }

 private:
  /// Returns nullptr if the value is missing or null.
  const Json* find(const std::string& place) const {
    const Json::json_pointer pointer(place);
    return config_.contains(pointer) && !config_.at(pointer).is_null() ? &config_.at(pointer) : nullptr;
  }

  /// Returns the value at a place, or a parameter's default.
  Json value_of(const std::string& place) const {
    if (const Json* found = find(place); found != nullptr) return *found;
    if (place == "/parameters/layers") {
      std::vector<std::size_t> all(config_.at("model").at("layers").get<std::size_t>());
      std::iota(all.begin(), all.end(), std::size_t{0});
      if (const Json* without = find("/model/layers_without_cache"); without != nullptr)
        for (const Json& layer : *without) std::erase(all, layer.get<std::size_t>());
      return all;
    }
    const Json& parameters =
        parsed_config_schema().at("definitions").at(config_.at("method").get<std::string>() + "_parameters");
    return parameters.at("properties").at(parts_of(place).back()).at("default");
  }

  std::size_t size_of(const std::string& name, const Match& at) const {
    if (name == "layers") return layers_.size();
    if (name == "factors") return config_.at("files").empty() ? 0 : layers_.size();
    if (name == "rope_chunks") return value_of("/model/rope/rotary_dim").get<std::size_t>() / 2;
    if (name == "kind_chunks") {
      const Json* kinds = find("/model/rope/kinds");
      const Json& kind = kinds == nullptr ? *find("/model/rope") : kinds->at(at.position.value_or(0));
      return kind.at("rotary_dim").get<std::size_t>() / 2;
    }
    if (name == "rope_kinds") return find("/model/rope/kinds") == nullptr ? 1 : value_of("/model/rope/kinds").size();
    if (name == "heads") {
      const bool queries = value_of("/calibration/ropelite/granularity") == "query-head";
      return largest_of(value_of(queries ? "/model/query_heads" : "/model/kv_heads"));
    }
    const Json value = value_of(name);
    return value.is_array() && at.position ? value.at(*at.position).get<std::size_t>() : largest_of(value);
  }

  void match(const Json& rule, std::span<const std::string> parts, const Match& at) const {
    if (parts.empty()) return apply(rule, at);
    const std::string& part = parts.front();
    if (part == "*" && at.place.value().is_array()) {
      for (std::size_t n = 0; n < at.place.array_size(); ++n)
        match(rule, parts.subspan(1), {at.place.at(n), at.position ? at.position : n});
    } else if (at.place.value().is_object() && at.place.has(part)) {
      match(rule, parts.subspan(1), {at.place.at(part), at.position});
    }
  }

  void apply(const Json& rule, const Match& at) const {
    const std::vector<JsonCursor> entries = entries_of(at.place);
    check_company(rule, at.place);
    if (at.place.value().is_array()) check_list(rule, at, entries);
    if (rule.contains("outside"))
      if (const Json* others = find(rule.at("outside").get<std::string>()); others != nullptr)
        for (const JsonCursor& entry : entries)
          if (std::ranges::find(*others, entry.value()) != others->end())
            entry.fail("none of " + rule.at("outside").get<std::string>());
    for (const auto& [key, excess] : {std::pair("below", 1), std::pair("at_most", 0)}) {
      if (!rule.contains(key)) continue;
      const std::size_t limit = size_of(rule.at(key).get<std::string>(), at);
      for (const JsonCursor& entry : entries) (void)entry.unsigned_integer(limit - static_cast<std::size_t>(excess));
    }
  }

  /// Checks members that must or must not accompany this one.
  void check_company(const Json& rule, const JsonCursor& place) const {
    if (rule.contains("needs"))
      if (const auto needed = rule.at("needs").get<std::string>(); !is_there(needed))
        throw Error(ErrorCode::kInput, where_ + ": " + needed,
                    "found nothing, expected a value that goes with " + place.pointer());
    if (rule.contains("is")) {
      const std::string& kind = rule.at("is").get_ref<const std::string&>();
      if (place.value().type_name() != kind) place.fail(kind == "absent" ? "nothing here" : "an " + kind);
    }
    if (rule.contains("same")) check_same(place, rule.at("same").get<std::string>());
  }

  /// Returns true if the value exists and, if it is a list, is not empty.
  bool is_there(const std::string& place) const {
    const Json* found = find(place);
    return found != nullptr && (!found->is_array() || !found->empty());
  }

  void check_same(const JsonCursor& place, const std::string& other) const {
    const Json expected = other == "/parameters/layers" ? layers_ : value_of(other);
    const bool by_layer = expected.is_array() && !place.value().is_array();
    const auto same = [&](const Json& one) { return one == place.value(); };
    if (by_layer ? !std::ranges::all_of(expected, same) : !same(expected))
      place.fail(describe_json(expected) + ", what " + other + " says");
  }

  void check_list(const Json& rule, const Match& at, const std::vector<JsonCursor>& entries) const {
    const auto asks = [&](const char* key) { return rule.value(key, false); };
    if (asks("some") && entries.empty()) at.place.fail("a list with some entries");
    if (rule.contains("length")) {
      const auto size = rule.at("length").get<std::string>();
      expect_length(at.place, size_of(size, at), size);
    }
    std::set<Json> seen;
    for (std::size_t n = 0; n < entries.size(); ++n) {
      if (asks("ascending") && n > 0 && entries[n].value() <= entries[n - 1].value())
        entries[n].fail("numbers in ascending order, each once");
      if (asks("distinct") && !seen.insert(entries[n].value()).second) entries[n].fail("each number once");
    }
    if (!rule.contains("sum")) return;
    std::uint64_t sum = 0;
    for (const JsonCursor& entry : entries) sum += entry.unsigned_integer();
    const auto whole = rule.at("sum").get<std::string>();
    if (const std::size_t expected = size_of(whole, at); sum != expected)
      at.place.fail("numbers that add to " + std::to_string(expected) + ", what " + whole + " says");
  }

  const Json& config_;
  std::string where_;
  Json layers_;  // a list
};

}  // namespace

void check_config_lists(const Json& config, const std::string& where) {
  const ListRules rules(config, where);
  for (const Json& rule : parsed_config_schema().at("lists").at("rules")) rules.check(rule);
}

std::vector<std::size_t> config_layers(const JsonCursor& config) {
  std::vector<std::size_t> layers;
  for (const JsonCursor& layer : entries_of(config.at("parameters").at("layers")))
    layers.push_back(layer.unsigned_integer());
  return layers;
}

void expect_length(const JsonCursor& list, std::size_t length, const std::string& what) {
  if (list.array_size() != length)
    list.fail("a list with one entry for each of the " + std::to_string(length) + ' ' + what);
}

}  // namespace kvs::inline calibrate
