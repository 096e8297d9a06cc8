// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_inspect.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/hdf5/capture_walk.h"
#include "io/hdf5/handle.h"
#include "io/hdf5/isolated.h"

namespace kvs::inline io {
namespace {

/// Returns the memory limit of the child. A dataset's description takes less memory than in the file. The library keeps
/// at most 32 MiB of metadata.
std::size_t memory_for(std::uint64_t file_bytes) {
  constexpr std::uint64_t kLibrary = 64U << 20, kMost = 512U << 20;
  return std::min(kLibrary + file_bytes, kMost);
}

/// Returns the time limit of the child. A walk takes far less; the limit ends files that make the library loop.
unsigned seconds_for(std::uint64_t file_bytes) {
  constexpr std::uint64_t kLeast = 15, kBytesEach = 2U << 20, kMost = 3600;
  return static_cast<unsigned>(std::min(kLeast + file_bytes / kBytesEach, kMost));
}

/// Runs in the child and does everything that libhdf5 does with an input file.
std::string inspect(int descriptor, const std::string& path, std::uint64_t file_bytes,
                    const std::optional<StateSet>& states) {
  const Hdf5Scope scope(ErrorCode::kInput, path);
  const Hdf5Handle access = property_list(scope, H5P_FILE_ACCESS);
  scope.check(H5Pset_file_locking(access.get(), false, true), "locking");
  // Otherwise the library keeps 4 KiB of every dataset that it has opened.
  scope.check(H5Pset_evict_on_close(access.get(), true), "cache");
  // Opens by descriptor: this is the file whose digest was checked, even if its name now leads elsewhere.
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  if (const Descriptor probe = open_descriptor(name, O_RDONLY); !probe.is_open())
    throw_errno(code_of_read_errno(errno), path, "cannot be opened again", errno);
  const Hdf5Handle file =
      scope.own(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose, "is no readable HDF5 file");
  Json found = read_attributes(scope, file.get());
  Json& names = found["states"] = Json::array();
  if (!states && found["layers"].empty()) throw Error(ErrorCode::kInput, path + ": /@layers", "expected a layer");
  const auto first_layer = found["layers"].empty() ? 0 : found["layers"][0].get<std::int64_t>();
  if (first_layer < 0 || first_layer > 99'999)
    throw Error(ErrorCode::kInput, path + ": /@layers",
                "found " + std::to_string(first_layer) + ", expected a layer number");
  for (const StateKind kind : states ? *states : find_states(scope, file.get(), static_cast<std::int32_t>(first_layer)))
    names.push_back(name_of(kind));
  if (!states)
    found["offsets"] = walk_datasets(scope, file.get(), header_from_json(JsonCursor(found, path)), file_bytes);
  return dump_json(found, -1);
}

}  // namespace

CaptureStructure inspect_capture(int descriptor, const std::filesystem::path& path, std::uint64_t file_bytes,
                                 const std::optional<StateSet>& states) {
  const std::string text =
      run_isolated(path.native(), [&] { return inspect(descriptor, path.native(), file_bytes, states); },
                   {.memory_bytes = memory_for(file_bytes), .cpu_seconds = seconds_for(file_bytes)});
  const Json found = parse_json(text, path.native());
  const JsonCursor cursor(found, path.native());
  CaptureStructure structure;
  structure.header = header_from_json(cursor);
  structure.complete = cursor.at("complete").integer(0, 1) == 1;
  if (!cursor.has("offsets")) return structure;
  const JsonCursor offsets = cursor.at("offsets");
  structure.offsets.resize(offsets.array_size());
  for (std::size_t i = 0; i < structure.offsets.size(); ++i)
    structure.offsets[i] = offsets.at(i).unsigned_integer(file_bytes);
  return structure;
}

}  // namespace kvs::inline io
