// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "export/overlay/manifest.h"

namespace kvs::inline exporting {

/// Puts an overlay's files into the model's folder: tensors of scales, the index, the configs. First all digests are
/// checked: those of the overlay's files, of the model's weights and of the files to replace. Each layer with a KV
/// cache must have scales or be stated to stay at 16 bits. A replaced file stays in the folder, as the same file under
/// another name. A link (the hub's cache) is replaced, never its target. If a step fails, the folder is restored.
/// @throws Error kConflict for another checkpoint, for a missing layer or for a second overlay; kInput; kEnvironment
OverlayManifest apply_overlay(const std::filesystem::path& overlay, const ModelSource& model);

/// Restores the files that the overlay replaced and removes the others, after an interrupted apply_overlay(), too.
/// First all of them are checked. @throws Error kConflict if one has changed since; kInput without an overlay
OverlayManifest undo_overlay(const std::filesystem::path& folder);

}  // namespace kvs::inline exporting
