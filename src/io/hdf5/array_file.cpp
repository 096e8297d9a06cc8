// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/array_file.h"

#include "core/checked.h"
#include "core/error.h"
#include "io/hdf5/handle.h"

namespace kvs::inline io {
namespace {

/// The stored type, memory type and data of a NamedArray's values.
struct ArrayType {
  hid_t stored, memory;
  const void* data;
  std::size_t size;
};

ArrayType type_of(std::span<const float> values) {
  return {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), values.size()};
}
ArrayType type_of(std::span<const double> values) {
  return {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data(), values.size()};
}
ArrayType type_of(std::span<const std::int32_t> values) {
  return {H5T_STD_I32LE, H5T_NATIVE_INT32, values.data(), values.size()};
}

void check_shape(const Hdf5Scope& scope, const NamedArray& array, std::size_t size) {
  std::optional<std::uint64_t> product = 1;
  for (const std::uint64_t extent : array.shape) product = product ? checked_multiply(*product, extent) : product;
  if (array.shape.empty() || array.shape.size() > 4 || product != size)
    throw Error(ErrorCode::kInternal, scope.file() + ": " + array.path,
                std::to_string(size) + " values do not fill a shape of rank " + std::to_string(array.shape.size()));
}

void write_array(const Hdf5Scope& scope, hid_t file, const NamedArray& array) {
  const ArrayType type = std::visit([](const auto& values) { return type_of(values); }, array.values);
  check_shape(scope, array, type.size);
  const Hdf5Handle creation = property_list(scope, H5P_DATASET_CREATE), links = property_list(scope, H5P_LINK_CREATE);
  scope.check(H5Pset_obj_track_times(creation.get(), false), array.path);
  scope.check(H5Pset_create_intermediate_group(links.get(), 1), array.path);
  const std::vector<hsize_t> shape(array.shape.begin(), array.shape.end());
  const Hdf5Handle space =
      scope.own(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose, array.path);
  const Hdf5Handle dataset = scope.own(
      H5Dcreate2(file, array.path.c_str(), type.stored, space.get(), links.get(), creation.get(), H5P_DEFAULT),
      H5Dclose, array.path);
  scope.check(H5Dwrite(dataset.get(), type.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, type.data), array.path);
  for (const auto& [name, value] : array.attributes) write_attribute(scope, dataset.get(), name, value);
}

/// Returns the bytes of the whole file, as libhdf5 would have written them to disk.
std::string file_image(const Hdf5Scope& scope, hid_t file) {
  scope.check(H5Fflush(file, H5F_SCOPE_GLOBAL), "image");
  const auto size = static_cast<std::size_t>(scope.check(H5Fget_file_image(file, nullptr, 0), "image"));
  std::string image(size, '\0');
  scope.check(H5Fget_file_image(file, image.data(), size), "image");
  return image;
}

}  // namespace

std::string array_file_bytes(std::span<const NamedArray> arrays, const TextAttributes& attributes) {
  // A failure means a wrong argument, because nothing here depends on the environment.
  const Hdf5Scope scope(ErrorCode::kInternal, "arrays");
  constexpr std::size_t kGrowth = 1UL << 20;
  const Hdf5Handle access = property_list(scope, H5P_FILE_ACCESS);
  scope.check(H5Pset_fapl_core(access.get(), kGrowth, false), "memory file");
  // libhdf5 looks for an existing file although it will not write one. No file can have this name.
  const Hdf5Handle file =
      scope.own(H5Fcreate("/dev/null/arrays", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose, "memory file");
  for (const auto& [name, value] : attributes) write_attribute(scope, file.get(), name, value);
  for (const NamedArray& array : arrays) write_array(scope, file.get(), array);
  return file_image(scope, file.get());
}

}  // namespace kvs::inline io
