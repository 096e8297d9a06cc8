// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace kvs::inline model {

/// Returns advice for a model that is not a path: its place in the Hugging Face hub's cache, or how to download it.
/// Empty if `name` is not a name of the hub ("OWNER/NAME").
std::string hub_advice(const std::filesystem::path& name);

/// @throws Error kInput, naming a snapshot, if `folder` is a model's folder in the hub's cache, its folder of snapshots
/// or the cache itself: the model is further below. Returns for any other folder.
void refuse_hub_cache(const std::filesystem::path& folder);

}  // namespace kvs::inline model
