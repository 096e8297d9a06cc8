#pragma once

#include <filesystem>
#include <string>

namespace kvs {

/// What to do about a model that is no path: where the Hugging Face hub's cache has it, or how it is fetched. Empty if
/// `name` is no name of the hub ("OWNER/NAME").
std::string hub_advice(const std::filesystem::path& name);

/// @throws Error kInput, naming a snapshot, if `folder` is a model's folder of the hub's cache, its folder of snapshots
/// or the cache itself: the model is further below. Returns for any other folder.
void refuse_hub_cache(const std::filesystem::path& folder);

}  // namespace kvs
