// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_walk.h"

#include <algorithm>

#include "core/error.h"

namespace kvs::inline io {
namespace {

/// Opens the object `name` of `group` through a hard link only. Soft and external links lead elsewhere.
/// @param place  the object's absolute path, for messages
Hdf5Handle open_object(const Hdf5Scope& scope, hid_t group, const std::string& name, const std::string& place,
                       H5I_type_t expected) {
  H5L_info_t link{};
  if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0) scope.refuse(place, "missing");
  if (link.type != H5L_TYPE_HARD)
    scope.refuse(place, std::string("found ") + (link.type == H5L_TYPE_SOFT ? "a soft" : "an external") +
                            " link, expected a hard one");
  Hdf5Handle object = scope.own(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, place);
  if (H5Iget_type(object.get()) != expected)
    scope.refuse(place, std::string("expected a ") + (expected == H5I_GROUP ? "group" : "dataset"));
  return object;
}

/// Opens a group that must have exactly `links` links.
Hdf5Handle open_group(const Hdf5Scope& scope, hid_t parent, const std::string& name, const std::string& place,
                      std::uint64_t links) {
  Hdf5Handle group = open_object(scope, parent, name, place, H5I_GROUP);
  H5G_info_t info{};
  scope.check(H5Gget_info(group.get(), &info), place);
  if (info.nlinks != links)
    scope.refuse(place, "found " + std::to_string(info.nlinks) + " members, expected " + std::to_string(links));
  return group;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t extent : shape) text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  return text.empty() ? "[]" : text + "]";
}

void check_shape(const Hdf5Scope& scope, hid_t dataset, const std::string& place, const CaptureDataset& expected) {
  const Hdf5Handle space = scope.own(H5Dget_space(dataset), H5Sclose, place);
  const int rank = scope.check(H5Sget_simple_extent_ndims(space.get()), place);
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  scope.check(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), place);
  const std::vector<std::uint64_t> shape(extents.begin(), extents.end());
  if (shape != expected.shape)
    scope.refuse(place, "found shape " + shape_text(shape) + ", expected " + shape_text(expected.shape));
}

void check_type(const Hdf5Scope& scope, hid_t dataset, const std::string& place, CaptureType expected) {
  const Hdf5Handle type = scope.own(H5Dget_type(dataset), H5Tclose, place), half = half_type(scope);
  const auto is = [&](hid_t other) { return scope.check(H5Tequal(type.get(), other), place) > 0; };
  bool matches = false;
  switch (expected) {
    case CaptureType::kInt32:
      matches = is(H5T_STD_I32LE);
      break;
    case CaptureType::kF32:
      matches = is(H5T_IEEE_F32LE);
      break;
    case CaptureType::kF16:
      matches = is(half.get());
      break;
    case CaptureType::kBF16:
      matches = is(H5T_STD_U16LE);
      break;
  }
  if (!matches) scope.refuse(place, "the stored type differs from the capture's dtype");
  if (expected != CaptureType::kBF16) return;
  if (const std::string dtype = read_text_attribute(scope, dataset, place, "dtype"); dtype != "bfloat16")
    scope.refuse(place + "@dtype", "found \"" + dtype + "\", expected \"bfloat16\"");
}

/// Checks that the dataset is raw bytes in this file, in one piece, without filters.
void check_storage(const Hdf5Scope& scope, hid_t dataset, const std::string& place) {
  const Hdf5Handle creation = scope.own(H5Dget_create_plist(dataset), H5Pclose, place);
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_VIRTUAL) scope.refuse(place, "found a virtual dataset, expected data in this file");
  if (scope.check(H5Pget_external_count(creation.get()), place) != 0)
    scope.refuse(place, "found external storage, expected data in this file");
  const int filters = scope.check(H5Pget_nfilters(creation.get()), place);
  if (layout != H5D_CONTIGUOUS || filters != 0)
    scope.refuse(place, "found chunked, compact or filtered storage, expected contiguous", ErrorCode::kUnsupported);
}

std::uint64_t check_dataset(const Hdf5Scope& scope, hid_t group, const std::string& name, const std::string& place,
                            const CaptureDataset& expected, std::uint64_t file_bytes) {
  const Hdf5Handle dataset = open_object(scope, group, name, place, H5I_DATASET);
  check_storage(scope, dataset.get(), place);
  check_shape(scope, dataset.get(), place, expected);
  check_type(scope, dataset.get(), place, expected.type);
  const haddr_t offset = H5Dget_offset(dataset.get());
  const hsize_t stored = H5Dget_storage_size(dataset.get());
  if (offset == HADDR_UNDEF || stored != expected.bytes || offset > file_bytes || stored > file_bytes - offset)
    scope.refuse(place, "found " + std::to_string(stored) + " stored bytes, expected " +
                            std::to_string(expected.bytes) + " inside the file of " + std::to_string(file_bytes) +
                            " bytes");
  return offset;
}

}  // namespace

StateSet find_states(const Hdf5Scope& scope, hid_t file, std::int32_t first_layer) {
  const std::string document = document_group(0), name = layer_group(first_layer).substr(6);
  const Hdf5Handle documents = open_object(scope, file, "doc", "/doc", H5I_GROUP);
  const Hdf5Handle first = open_object(scope, documents.get(), document.substr(5), document, H5I_GROUP);
  const Hdf5Handle layers = open_object(scope, first.get(), "layer", document + "/layer", H5I_GROUP);
  const Hdf5Handle layer = open_object(scope, layers.get(), name, document + "/layer/" + name, H5I_GROUP);
  StateSet states;
  for (const StateKind kind : kStateKinds)
    if (scope.check(H5Lexists(layer.get(), std::string(name_of(kind)).c_str(), H5P_DEFAULT), document) > 0)
      states.insert(kind);
  return states;
}

std::vector<std::uint64_t> walk_datasets(const Hdf5Scope& scope, hid_t file, const CaptureHeader& header,
                                         std::uint64_t file_bytes) {
  const CaptureLayout layout = layout_of(header, scope.file());
  H5G_info_t root{};
  scope.check(H5Gget_info(file, &root), "/");
  if (root.nlinks != 1) scope.refuse("/", "found " + std::to_string(root.nlinks) + " members, expected only doc");
  const Hdf5Handle documents = open_group(scope, file, "doc", "/doc", header.documents);
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t number = 0; number < header.documents; ++number) {
    const std::string place = document_group(number);
    const Hdf5Handle document = open_group(scope, documents.get(), place.substr(5), place, 3);
    const auto check = [&](hid_t group, const std::string& name, const CaptureDataset& dataset) {
      offsets.push_back(check_dataset(scope, group, name, place + "/" + dataset.name, dataset, file_bytes));
    };
    check(document.get(), "tokens", layout.datasets[0]);
    check(document.get(), "nll", layout.datasets[1]);
    const Hdf5Handle layers = open_group(scope, document.get(), "layer", place + "/layer", header.layers.size());
    std::size_t next = 2;
    for (const std::int32_t layer : header.layers) {
      const std::string below = layer_group(layer);
      const Hdf5Handle group =
          open_group(scope, layers.get(), below.substr(6), place + "/" + below, header.states.size());
      for (const StateKind kind : header.states)
        check(group.get(), std::string(name_of(kind)), layout.datasets[next++]);
    }
  }
  return offsets;
}

}  // namespace kvs::inline io
