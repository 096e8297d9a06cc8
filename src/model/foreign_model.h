// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace kvs::inline model {

/// Checks whether a folder without readable weights holds another kind of model: an adapter, an ONNX graph, a pickle.
/// Recognises them by file names, down to two levels of folders. @throws Error kUnsupported with the file, its kind and
/// advice; kInput for a folder of GGUF files or of safetensors that Transformers would not find. Otherwise returns.
void refuse_foreign_folder(const std::filesystem::path& folder);

/// Like refuse_foreign_folder(), for one file, by its name and its first bytes.
void refuse_foreign_file(const std::filesystem::path& file);

}  // namespace kvs::inline model
