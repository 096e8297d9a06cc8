#pragma once

#include <filesystem>

namespace kvs {

/// A folder without weights that can be read may hold a model of another kind: an adapter, an ONNX graph, a pickle.
/// Found by the names of its files, two folders below as well. @throws Error kUnsupported with the file, what it is and
/// what to do; kInput for a folder of GGUF files or of safetensors that Transformers would not find. Returns if the
/// folder holds none that is known.
void refuse_foreign_folder(const std::filesystem::path& folder);

/// The same of one file, by its name and its first bytes.
void refuse_foreign_file(const std::filesystem::path& file);

}  // namespace kvs
