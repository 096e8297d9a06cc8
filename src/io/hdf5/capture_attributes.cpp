// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/error.h"
#include "core/utf8.h"
#include "io/hdf5/capture_walk.h"

namespace kvs::inline io {
namespace {

constexpr hssize_t kMaxValues = 1 << 17;

/// An attribute of one object, with its type and number of values.
struct OpenAttribute {
  std::string place;
  Hdf5Handle attribute, type;
  H5T_class_t type_class = H5T_NO_CLASS;
  int rank = 0;
  hssize_t values = 0;
};

OpenAttribute open_attribute(const Hdf5Scope& scope, hid_t object, const std::string& path, const std::string& name) {
  OpenAttribute opened;
  opened.place = path + "@" + name;
  if (scope.check(H5Aexists(object, name.c_str()), opened.place) == 0)
    scope.refuse(opened.place, "the attribute is missing");
  opened.attribute = scope.own(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, opened.place);
  opened.type = scope.own(H5Aget_type(opened.attribute.get()), H5Tclose, opened.place);
  opened.type_class = H5Tget_class(opened.type.get());
  const Hdf5Handle space = scope.own(H5Aget_space(opened.attribute.get()), H5Sclose, opened.place);
  opened.rank = scope.check(H5Sget_simple_extent_ndims(space.get()), opened.place);
  opened.values = scope.check(H5Sget_simple_extent_npoints(space.get()), opened.place);
  if (opened.values > kMaxValues)
    scope.refuse(opened.place, "found " + std::to_string(opened.values) + " values, expected at most 131072");
  return opened;
}

template <class T>
std::vector<T> read_numbers(const Hdf5Scope& scope, const OpenAttribute& opened) {
  const bool real = std::is_floating_point_v<T>;
  const bool fits = opened.type_class == H5T_INTEGER || (real && opened.type_class == H5T_FLOAT);
  if (!fits || H5Tget_size(opened.type.get()) > 8)
    scope.refuse(opened.place, std::string("expected ") + (real ? "real numbers" : "integers") + " of at most 64 bits");
  std::vector<T> values(static_cast<std::size_t>(opened.values));
  const hid_t memory = real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;
  if (!values.empty()) scope.check(H5Aread(opened.attribute.get(), memory, values.data()), opened.place);
  return values;
}

template <class T>
std::vector<T> read_list(const Hdf5Scope& scope, hid_t file, const std::string& name) {
  const OpenAttribute opened = open_attribute(scope, file, "/", name);
  if (opened.rank != 1) scope.refuse(opened.place, "found rank " + std::to_string(opened.rank) + ", expected a list");
  return read_numbers<T>(scope, opened);
}

template <class T>
T read_scalar(const Hdf5Scope& scope, hid_t file, const std::string& name) {
  const OpenAttribute opened = open_attribute(scope, file, "/", name);
  if (opened.values != 1)
    scope.refuse(opened.place, "found " + std::to_string(opened.values) + " values, expected one");
  return read_numbers<T>(scope, opened)[0];
}

/// Reads one number, or a list of them.
Json read_sizes(const Hdf5Scope& scope, hid_t file, const std::string& name) {
  const OpenAttribute opened = open_attribute(scope, file, "/", name);
  if (opened.rank == 1 && opened.values != 1) return read_numbers<std::int64_t>(scope, opened);
  return read_scalar<std::int64_t>(scope, file, name);
}

/// Reads a string of variable length, which the library allocates.
std::string read_variable_text(const Hdf5Scope& scope, const OpenAttribute& opened) {
  const Hdf5Handle memory = string_type(scope);
  // libhdf5 does not convert between character sets.
  scope.check(H5Tset_cset(memory.get(), H5Tget_cset(opened.type.get())), opened.place);
  char* text = nullptr;
  scope.check(H5Aread(opened.attribute.get(), memory.get(), &text), opened.place);
  if (text == nullptr) return "";
  std::string value(text, ::strnlen(text, kMaxTextBytes + 1));
  H5free_memory(text);
  return value;
}

std::string read_fixed_text(const Hdf5Scope& scope, const OpenAttribute& opened) {
  const std::size_t size = H5Tget_size(opened.type.get());
  if (size > kMaxTextBytes)
    scope.refuse(opened.place, "found " + std::to_string(size) + " bytes, expected at most 65536");
  std::string value(size, '\0');
  scope.check(H5Aread(opened.attribute.get(), opened.type.get(), value.data()), opened.place);
  return value.substr(0, value.find('\0'));
}

}  // namespace

std::string read_text_attribute(const Hdf5Scope& scope, hid_t object, const std::string& path,
                                const std::string& name) {
  const OpenAttribute opened = open_attribute(scope, object, path, name);
  if (opened.type_class != H5T_STRING || opened.values != 1) scope.refuse(opened.place, "expected one string");
  const bool variable = scope.check(H5Tis_variable_str(opened.type.get()), opened.place) > 0;
  std::string value = variable ? read_variable_text(scope, opened) : read_fixed_text(scope, opened);
  if (find_invalid_utf8(value) != std::string_view::npos) scope.refuse(opened.place, "expected UTF-8 text");
  return value;
}

Json read_attributes(const Hdf5Scope& scope, hid_t file) {
  const auto text = [&](const std::string& name) { return read_text_attribute(scope, file, "/", name); };
  const auto integer = [&](const std::string& name) { return read_scalar<std::int64_t>(scope, file, name); };
  if (const std::string format = text("format"); format != kCaptureFormat)
    scope.refuse("/@format", "found \"" + format + "\", expected \"" + std::string(kCaptureFormat) + "\"");
  if (const std::int64_t version = integer("version"); version < 1 || version > kCaptureVersion)
    scope.refuse("/@version", "found " + std::to_string(version) + ", expected 1 to " + std::to_string(kCaptureVersion),
                 version > kCaptureVersion ? ErrorCode::kUnsupported : ErrorCode::kInput);
  Json header;
  for (const char* const name :
       {"model_name", "model_sha256", "architecture", "rope_scaling", "rope_parameters", "dtype"})
    header[name] = text(name);
  for (const char* const name : {"model_layers", "tokens", "documents", "complete"}) header[name] = integer(name);
  for (const char* const name : {"query_heads", "kv_heads", "head_dim", "rotary_dim"})
    header[name] = read_sizes(scope, file, name);
  if (const std::string name = "layers_without_cache"; scope.check(H5Aexists(file, name.c_str()), "/@" + name) > 0)
    header[name] = read_list<std::int64_t>(scope, file, name);
  for (const char* const name : {"layers", "rope_kinds"}) header[name] = read_list<std::int64_t>(scope, file, name);
  const auto theta = read_scalar<double>(scope, file, "rope_theta");
  // JSON has no non-finite numbers.
  if (!std::isfinite(theta)) scope.refuse("/@rope_theta", "expected a finite number");
  header["rope_theta"] = theta;
  for (const char* const name : {"rope_factors", "rope_frequencies"}) {
    const auto values = read_list<double>(scope, file, name);
    for (const double value : values)
      if (!std::isfinite(value)) scope.refuse(std::string("/@") + name, "expected finite numbers");
    header[name] = values;
  }
  return header;
}

}  // namespace kvs::inline io
