// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_skeleton.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/hdf5/capture_io.h"
#include "io/hdf5/handle.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

/// Value of `complete` while the file is laid out. UTF-8 text never has its bytes, so finding them finds `complete`.
constexpr std::uint64_t kCompleteMark = 0xf8f9fafbfcfdfeffULL;
/// Metadata are grouped in blocks of this size instead of lying between the datasets, which start at whole pages.
constexpr hsize_t kMetadataBlock = 1U << 16, kAlignment = 4096;

struct RemoveOnFailure {
  const fs::path& path;
  bool armed = true;
  ~RemoveOnFailure() {
    if (armed) ::unlink(path.c_str());
  }
};

void allocate(int descriptor, const fs::path& path, std::uint64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (error != 0)
    throw_errno(ErrorCode::kEnvironment, path, "cannot reserve " + std::to_string(bytes) + " bytes", error);
}

/// Fails early, when failing is cheap: after a failed write, libhdf5 cannot be left in a valid state.
void check_space(const fs::path& path, const CaptureHeader& header, const CaptureLayout& layout) {
  constexpr std::uint64_t kPerDataset = kAlignment + 1024, kPerGroup = 2048, kFixed = 4 * kMetadataBlock;
  const std::uint64_t overhead = layout.datasets.size() * kPerDataset + (header.layers.size() + 2) * kPerGroup;
  Descriptor file = open_descriptor(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (!file.is_open()) throw_errno(ErrorCode::kEnvironment, path, "cannot create", errno);
  const RemoveOnFailure always_removed{path};
  allocate(file.get(), path, header.documents * (layout.document_bytes + overhead) + kFixed);
}

/// Writes the root attributes. Every integer is 64-bit and lists are one-dimensional.
class AttributeWriter {
 public:
  AttributeWriter(const Hdf5Scope& scope, hid_t root) : scope_(scope), root_(root) {}

  void text(const std::string& name, const std::string& value) const { write_attribute(scope_, root_, name, value); }
  void integer(const std::string& name, std::uint64_t value) const {
    scalar(name, H5T_STD_I64LE, H5T_NATIVE_UINT64, &value);
  }
  void sizes(const std::string& name, const LayerSizes& sizes) const {
    if (!sizes.is_list()) return integer(name, sizes.values().front());
    list(name, H5T_STD_I64LE, H5T_NATIVE_UINT64,
         std::vector<std::uint64_t>(sizes.values().begin(), sizes.values().end()));
  }
  void real(const std::string& name, double value) const { scalar(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value); }
  template <class T>
  void list(const std::string& name, hid_t stored, hid_t memory, const std::vector<T>& values) const {
    const hsize_t size = values.size();
    write(name, stored, memory, values.data(), scope_.own(H5Screate_simple(1, &size, nullptr), H5Sclose, name));
  }
  /// Stores a bit pattern unchanged, without conversion to a signed number.
  void mark(const std::string& name, std::uint64_t bits) const { scalar(name, H5T_STD_I64LE, H5T_STD_I64LE, &bits); }

 private:
  void scalar(const std::string& name, hid_t stored, hid_t memory, const void* value) const {
    write(name, stored, memory, value, scope_.own(H5Screate(H5S_SCALAR), H5Sclose, name));
  }
  void write(const std::string& name, hid_t stored, hid_t memory, const void* value, const Hdf5Handle& space) const {
    const Hdf5Handle attribute =
        scope_.own(H5Acreate2(root_, name.c_str(), stored, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
    scope_.check(H5Awrite(attribute.get(), memory, value), name);
  }

  const Hdf5Scope& scope_;
  hid_t root_;
};

void write_header(const Hdf5Scope& scope, hid_t file, const CaptureHeader& header) {
  const AttributeWriter attributes(scope, file);
  attributes.text("format", std::string(kCaptureFormat));
  attributes.integer("version", static_cast<std::uint64_t>(capture_version(header)));
  attributes.mark("complete", kCompleteMark);
  attributes.text("model_name", header.model_name);
  attributes.text("model_sha256", header.model_sha256);
  attributes.text("architecture", header.architecture);
  attributes.integer("model_layers", header.model_layers);
  attributes.list("layers", H5T_STD_I32LE, H5T_NATIVE_INT32, header.layers);
  attributes.sizes("query_heads", header.query_heads);
  attributes.sizes("kv_heads", header.kv_heads);
  attributes.sizes("head_dim", header.head_dim);
  attributes.real("rope_theta", header.rope_theta);
  attributes.text("rope_scaling", header.rope_scaling);
  attributes.text("rope_parameters", header.rope_parameters);
  attributes.sizes("rotary_dim", header.rotary_dim);
  attributes.list("rope_kinds", H5T_STD_I32LE, H5T_NATIVE_INT32, header.rope_kinds);
  attributes.list("rope_factors", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, header.rope_factors);
  attributes.list("rope_frequencies", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, header.rope_frequencies);
  attributes.text("dtype", std::string(name_of(header.store)));
  attributes.integer("tokens", header.tokens);
  attributes.integer("documents", header.documents);
  if (!header.layers_without_cache.empty())
    attributes.list("layers_without_cache", H5T_STD_I32LE, H5T_NATIVE_INT32, header.layers_without_cache);
}

/// Creates every dataset. Returns their offsets.
std::vector<std::uint64_t> create_datasets(const Hdf5Scope& scope, hid_t file, const CaptureHeader& header,
                                           const CaptureLayout& layout) {
  const Hdf5Handle creation = property_list(scope, H5P_DATASET_CREATE), links = property_list(scope, H5P_LINK_CREATE);
  scope.check(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "layout");
  scope.check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "layout");
  scope.check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "layout");
  scope.check(H5Pset_obj_track_times(creation.get(), false), "layout");
  scope.check(H5Pset_create_intermediate_group(links.get(), 1), "layout");
  const Hdf5Handle half = half_type(scope);
  const auto type_of = [&](CaptureType type) {
    if (type == CaptureType::kInt32) return H5T_STD_I32LE;
    if (type == CaptureType::kF32) return H5T_IEEE_F32LE;
    return type == CaptureType::kF16 ? half.get() : H5T_STD_U16LE;
  };
  std::vector<std::uint64_t> offsets;
  offsets.reserve(header.documents * layout.datasets.size());
  for (std::uint64_t document = 0; document < header.documents; ++document)
    for (const CaptureDataset& dataset : layout.datasets) {
      const std::string path = document_group(document) + "/" + dataset.name;
      const std::vector<hsize_t> shape(dataset.shape.begin(), dataset.shape.end());
      const Hdf5Handle space =
          scope.own(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose, path);
      const Hdf5Handle stored = scope.own(
          H5Dcreate2(file, path.c_str(), type_of(dataset.type), space.get(), links.get(), creation.get(), H5P_DEFAULT),
          H5Dclose, path);
      if (dataset.type == CaptureType::kBF16) write_attribute(scope, stored.get(), "dtype", "bfloat16");
      const haddr_t offset = H5Dget_offset(stored.get());
      if (offset == HADDR_UNDEF) throw Error(ErrorCode::kInternal, path, "HDF5 gave the dataset no storage");
      offsets.push_back(offset);
    }
  return offsets;
}

std::vector<std::uint64_t> write_hdf5(const fs::path& path, const CaptureHeader& header, const CaptureLayout& layout) {
  const Hdf5Scope scope(ErrorCode::kEnvironment, path.native());
  const Hdf5Handle access = property_list(scope, H5P_FILE_ACCESS);
  // The oldest format has no checksums inside its metadata, so `complete` can be set in place at the end.
  scope.check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18), "format");
  scope.check(H5Pset_file_locking(access.get(), false, true), "locking");
  scope.check(H5Pset_meta_block_size(access.get(), kMetadataBlock), "metadata block");
  scope.check(H5Pset_alignment(access.get(), kAlignment, kAlignment), "alignment");
  Hdf5Handle file =
      scope.own(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.get()), H5Fclose, "cannot create");
  write_header(scope, file.get(), header);
  std::vector<std::uint64_t> offsets = create_datasets(scope, file.get(), header, layout);
  scope.check(file.close(), "cannot write");
  return offsets;
}

std::uint64_t find_mark(int descriptor, const fs::path& path, std::span<const FileRange> ranges) {
  const auto mark = std::bit_cast<std::array<std::byte, kCompleteBytes>>(kCompleteMark);
  std::vector<std::byte> buffer(kCaptureBlock);
  for (const auto& [first, last] : ranges)
    // Blocks overlap by one byte less than the mark, because the mark may cross a block border.
    for (std::uint64_t at = first; at < last; at += kCaptureBlock - (kCompleteBytes - 1)) {
      const std::span block(buffer.data(), static_cast<std::size_t>(std::min(kCaptureBlock, last - at)));
      read_at(descriptor, path, block, at);
      const auto found = std::search(block.begin(), block.end(), mark.begin(), mark.end());
      if (found != block.end()) return at + static_cast<std::uint64_t>(found - block.begin());
    }
  throw Error(ErrorCode::kInternal, path.native(), "the attribute complete was not found in the new file");
}

}  // namespace

CaptureIndex create_skeleton(const fs::path& path, const CaptureHeader& header, const CaptureLayout& layout,
                             std::uint64_t& complete_offset) {
  check_space(path, header, layout);
  RemoveOnFailure guard{path};
  CaptureIndex index;
  index.offsets = write_hdf5(path, header, layout);
  for (const CaptureDataset& dataset : layout.datasets) {
    index.names.push_back(dataset.name);
    index.bytes.push_back(dataset.bytes);
  }
  const Descriptor file = open_descriptor(path, O_RDWR | O_NOFOLLOW);
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0)
    throw_errno(ErrorCode::kEnvironment, path, "cannot open", errno);
  index.file_bytes = static_cast<std::uint64_t>(status.st_size);
  allocate(file.get(), path, index.file_bytes);
  const std::vector<FileRange> ranges = metadata_ranges(index, path.native());
  complete_offset = find_mark(file.get(), path, ranges);
  write_at(file.get(), path, std::array<std::byte, kCompleteBytes>{}, complete_offset);
  index.metadata_sha256 = metadata_digest(file.get(), path, ranges);
  guard.armed = false;
  return index;
}

}  // namespace kvs::inline io
