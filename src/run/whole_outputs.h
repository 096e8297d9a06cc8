#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "io/json.h"

namespace kvs {

/// The first file that a finished run has not left whole, or nothing.
/// @param main    the output that says what the run was, already read as `json`: its `files` hold SHA-256
/// @param others  the files beside it: figures and JSON have their ends, HDF5 files their sizes, others some byte; a
/// PNG
///                may be absent
std::optional<std::filesystem::path> find_damaged_output(const std::filesystem::path& main, const Json& json,
                                                         std::span<const std::filesystem::path> others);

}  // namespace kvs
