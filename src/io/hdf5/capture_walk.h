// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5/capture_layout.h"
#include "io/hdf5/handle.h"
#include "io/json.h"

namespace kvs::inline io {

/// Reads the root attributes of an open capture, as input of header_from_json(), and "complete". Runs in the child.
Json read_attributes(const Hdf5Scope& scope, hid_t file);

/// Returns the value of a string attribute. @throws Error kInput naming PATH@NAME if it is missing or not a string.
std::string read_text_attribute(const Hdf5Scope& scope, hid_t object, const std::string& path, const std::string& name);

/// Returns the kinds of states that the first document's first layer holds, in file order.
StateSet find_states(const Hdf5Scope& scope, hid_t file, std::int32_t first_layer);

/// Checks every link and dataset of a capture against its header. @return offsets [document · dataset].
/// @throws Error kInput naming the HDF5 path.
std::vector<std::uint64_t> walk_datasets(const Hdf5Scope& scope, hid_t file, const CaptureHeader& header,
                                         std::uint64_t file_bytes);

}  // namespace kvs::inline io
