// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/handle.h"

namespace kvs::inline io {
namespace {

/// H5Ewalk2 callback: keeps the first description, which is the innermost.
herr_t keep_description(unsigned level, const H5E_error2_t* error, void* text) {
  if (level == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

}  // namespace

Hdf5Scope::Hdf5Scope(ErrorCode code, std::string file) : code_(code), file_(std::move(file)) {
  static const bool kReady = [] {
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);
    return true;
  }();
  static_cast<void>(kReady);
}

void Hdf5Scope::fail(std::string_view action) const {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, &reason);
  throw Error(code_, file_, std::string(action) + ": HDF5: " + (reason.empty() ? "unknown failure" : reason));
}

void Hdf5Scope::refuse(const std::string& place, const std::string& problem, ErrorCode code) const {
  throw Error(code, file_ + ": " + place, problem);
}

Hdf5Handle property_list(const Hdf5Scope& scope, hid_t list_class) {
  return scope.own(H5Pcreate(list_class), H5Pclose, "property list");
}

Hdf5Handle string_type(const Hdf5Scope& scope) {
  Hdf5Handle type = scope.own(H5Tcopy(H5T_C_S1), H5Tclose, "string type");
  scope.check(H5Tset_size(type.get(), H5T_VARIABLE), "string type");
  scope.check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "string type");
  return type;
}

Hdf5Handle half_type(const Hdf5Scope& scope) {
  Hdf5Handle type = scope.own(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "half type");
  // Sign bit 15, 5 exponent bits from bit 10 with bias 15, 10 mantissa bits from bit 0.
  scope.check(H5Tset_fields(type.get(), 15, 10, 5, 0, 10), "half type");
  scope.check(H5Tset_size(type.get(), 2), "half type");
  scope.check(H5Tset_ebias(type.get(), 15), "half type");
  return type;
}

void write_attribute(const Hdf5Scope& scope, hid_t object, const std::string& name, const std::string& value) {
  const Hdf5Handle type = string_type(scope);
  const Hdf5Handle space = scope.own(H5Screate(H5S_SCALAR), H5Sclose, name);
  const Hdf5Handle attribute =
      scope.own(H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
  const char* const text = value.c_str();
  scope.check(H5Awrite(attribute.get(), type.get(), &text), name);
}

}  // namespace kvs::inline io
