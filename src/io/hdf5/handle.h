// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace kvs::inline io {

/// Owns one HDF5 identifier. Used only in io/hdf5.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close closer) noexcept : id_(id), close_(closer) {}
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  hid_t get() const noexcept { return id_; }
  /// Closes now, for objects whose closing can fail (files). Returns a negative value on failure; the identifier is
  /// gone either way.
  herr_t close() noexcept { return close_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Checks every status that libhdf5 returns. A failure is the input's fault when a file is read (kInput) and the
/// environment's fault when a file is written (kEnvironment).
class Hdf5Scope {
 public:
  /// Stops the library from printing to stderr, loading plugins and running at exit (it crashes after a failed write).
  Hdf5Scope(ErrorCode code, std::string file);

  /// @throws Error "FILE: ACTION: <innermost message of the library>" if `result` is negative.
  template <std::signed_integral T>
  T check(T result, std::string_view action) const {
    if (result < 0) fail(action);
    return result;
  }
  Hdf5Handle own(hid_t id, Hdf5Handle::Close close, std::string_view action) const {
    return {check(id, action), close};
  }
  const std::string& file() const noexcept { return file_; }
  /// @throws Error "FILE: PLACE: PROBLEM".
  [[noreturn]] void refuse(const std::string& place, const std::string& problem,
                           ErrorCode code = ErrorCode::kInput) const;

 private:
  [[noreturn]] void fail(std::string_view action) const;

  ErrorCode code_;
  std::string file_;
};

/// Returns a property list of `list_class` with the library's defaults.
Hdf5Handle property_list(const Hdf5Scope& scope, hid_t list_class);
/// Returns the type of a UTF-8 string of any length, which h5py reads as `str`.
Hdf5Handle string_type(const Hdf5Scope& scope);
/// Returns the type IEEE binary16, little-endian, which h5py reads as float16.
Hdf5Handle half_type(const Hdf5Scope& scope);
void write_attribute(const Hdf5Scope& scope, hid_t object, const std::string& name, const std::string& value);

}  // namespace kvs::inline io
