// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/json.h"

namespace kvs::inline io {

/// A struct declares its members once, in writing order:
///
///     struct Point {
///       double share;
///       std::optional<double> ratio;  // null if a double cannot hold the value
///       static void fields(auto& point, auto&& field) {
///         field("share", point.share)("ratio", point.ratio);
///       }
///     };
///
/// to_json writes the struct; from_json<Point> reads it. Members are bool, integers, double, std::string, Json, enums
/// with names, structs that declare fields, classes with json() and from_json(), and std::vector, std::pair,
/// std::map<std::string, …> and std::optional of these. An empty optional is null. If the struct has `static void
/// check(const T&, const JsonCursor&)`, it is called after reading. An enum has a function
/// `std::array<std::string_view, N> json_names(Enum)` in its namespace, with the names in the order of the values.
class JsonFieldReader;
class JsonFieldWriter;

template <class T>
concept HasJsonFields = requires(const T& value, JsonFieldWriter& writer) {
  T::fields(value, writer);
};

template <HasJsonFields T>
Json to_json(const T& value);
template <class T>
T from_json(const JsonCursor& json);

namespace json_fields {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;

/// A value that is one JSON value: it has json() and from_json().
template <class T>
concept HasJsonValue = requires(const T& value, const JsonCursor& json) {
  { value.json() } -> std::same_as<Json>;
  { T::from_json(json) } -> std::same_as<T>;
};

template <class T>
Json written(const T& value) {
  if constexpr (HasJsonFields<T>) {
    return to_json(value);
  } else if constexpr (HasJsonValue<T>) {
    return value.json();
  } else if constexpr (is_optional<T>) {
    return value ? written(*value) : Json();
  } else if constexpr (is_vector<T>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(written<typename T::value_type>(element));
    return list;
  } else if constexpr (is_pair<T>) {
    return Json::array({written(value.first), written(value.second)});
  } else if constexpr (is_map<T>) {
    Json object = Json::object();
    for (const auto& [name, member] : value) object[name] = written(member);
    return object;
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(json_names(T{}).at(static_cast<std::size_t>(value)));
  } else {
    return Json(value);
  }
}

/// Returns the index of the string `json` in `names`. @throws Error kInput listing the names
std::size_t place_of_name(const JsonCursor& json, std::span<const std::string_view> names);

template <class T>
T read(const JsonCursor& json) {
  if constexpr (HasJsonFields<T>) {
    return from_json<T>(json);
  } else if constexpr (HasJsonValue<T>) {
    return T::from_json(json);
  } else if constexpr (is_optional<T>) {
    return json.is_null() ? T() : T(read<typename T::value_type>(json));
  } else if constexpr (is_vector<T>) {
    T list;
    for (std::size_t n = 0; n < json.array_size(); ++n) list.push_back(read<typename T::value_type>(json.at(n)));
    return list;
  } else if constexpr (is_pair<T>) {
    if (json.array_size() != 2) json.fail("a pair");
    return {read<typename T::first_type>(json.at(std::size_t{0})),
            read<typename T::second_type>(json.at(std::size_t{1}))};
  } else if constexpr (is_map<T>) {
    T map;
    for (const std::string& name : json.keys()) map.emplace(name, read<typename T::mapped_type>(json.at(name)));
    return map;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(place_of_name(json, json_names(T{})));
  } else if constexpr (std::same_as<T, Json>) {
    return json.value();
  } else if constexpr (std::same_as<T, bool>) {
    return json.boolean();
  } else if constexpr (std::unsigned_integral<T>) {
    return static_cast<T>(json.unsigned_integer(std::numeric_limits<T>::max()));
  } else if constexpr (std::signed_integral<T>) {
    return static_cast<T>(json.integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(json.real());
  } else {
    return json.string();
  }
}

}  // namespace json_fields

class JsonFieldWriter {
 public:
  explicit JsonFieldWriter(Json& object) : object_(object) {}

  /// `old_name` is the member's name in files of the previous version.
  template <class T>
  JsonFieldWriter& operator()(std::string_view name, const T& value, [[maybe_unused]] std::string_view old_name = {}) {
    object_[std::string(name)] = json_fields::written(value);
    return *this;
  }
  /// A member that is absent, not null, where there is no value. Null is the empty value of an optional in an optional.
  template <class T>
  void absent_or(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }
  /// A member that files of older versions lack; its value then stays as it is.
  template <class T>
  void newer(std::string_view name, const T& value) {
    (*this)(name, value);
  }
  /// The members of `part` as members of this object.
  template <HasJsonFields T>
  void inlined(const T& part) {
    T::fields(part, *this);
  }
  /// Writes the members of an optional part. An object without the member `first` does not have the part.
  template <HasJsonFields T>
  void inlined([[maybe_unused]] std::string_view first, const std::optional<T>& part) {
    if (part) inlined(*part);
  }

 private:
  Json& object_;
};

class JsonFieldReader {
 public:
  explicit JsonFieldReader(const JsonCursor& object) : object_(object) {}

  template <class T>
  JsonFieldReader& operator()(std::string_view name, T& value, std::string_view old_name = {}) {
    const bool is_old = !old_name.empty() && !object_.has(name) && object_.has(old_name);
    if (is_old) name = old_name;
    if constexpr (json_fields::is_optional<T>)
      value = object_.has(name) ? json_fields::read<T>(object_.at(name)) : T();
    else
      value = json_fields::read<T>(object_.at(name));
    return *this;
  }
  template <class T>
  void absent_or(std::string_view name, std::optional<T>& value) {
    if constexpr (json_fields::is_optional<T>) {  // null is a value
      value.reset();
      if (object_.has(name) || object_.value().contains(name)) value.emplace(json_fields::read<T>(object_.at(name)));
    } else {
      (*this)(name, value);
    }
  }
  template <class T>
  void newer(std::string_view name, T& value) {
    if (object_.has(name)) (*this)(name, value);
  }
  template <HasJsonFields T>
  void inlined(T& part) {
    T::fields(part, *this);
  }
  template <HasJsonFields T>
  void inlined(std::string_view first, std::optional<T>& part) {
    if (!object_.value().contains(std::string(first))) return;
    part = T{};  // clang 14 has no emplace() for structs in structs
    inlined(*part);
  }

 private:
  const JsonCursor& object_;
};

/// Never throws by itself; dump_json refuses a double that is not finite. Cost O(members)
template <HasJsonFields T>
Json to_json(const T& value) {
  Json object = Json::object();
  JsonFieldWriter writer(object);
  T::fields(value, writer);
  return object;
}

/// The value, or null.
template <class T>
Json json_of(const std::optional<T>& value) {
  return json_fields::written(value);
}

/// @throws Error kInput "FILE: /pointer: found X, expected Y" for the first member that is missing or of another type.
/// Members that T does not declare are not read.
template <class T>
T from_json(const JsonCursor& json) {
  T value{};
  JsonFieldReader reader(json);
  T::fields(value, reader);
  if constexpr (requires { T::check(value, json); }) T::check(value, json);
  return value;
}

}  // namespace kvs::inline io
