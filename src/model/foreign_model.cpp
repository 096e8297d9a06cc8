// SPDX-License-Identifier: Apache-2.0
#include "model/foreign_model.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace kvs::inline model {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSave = "load it with its own program and save it by Transformers' save_pretrained()";
constexpr std::string_view kSource = "use the model that it was made from";
constexpr std::string_view kPickle = "a pickle, which can run code";
constexpr std::string_view kGgml = "weights in GGML's format, which GGUF replaced",
                           kGgmlAdvice = "convert it by llama.cpp's convert_llama_ggml_to_gguf.py, or fetch a GGUF";

/// Prefix and suffix of the file names of a kind.
struct Kind {
  std::string_view begin, end, name, advice;
};

/// Kinds whose files occur next to others come first: an adapter may have pickles, OpenVINO .bin files.
constexpr std::array kKinds{
    Kind{"adapter_", ".json", "the config of an adapter (LoRA and the like), which is no whole model",
         "merge it into its base model: PEFT's merge_and_unload(), then save_pretrained()"},
    Kind{"adapter_model.", "", "the weights of an adapter (LoRA and the like), which is no whole model",
         "merge it into its base model: PEFT's merge_and_unload(), then save_pretrained()"},
    Kind{"model_index", ".json", "a pipeline of Diffusers", "no language model is in it"},
    Kind{"pytorch_model", ".bin", kPickle, kSave},
    Kind{"pytorch_model", ".bin.index.json", "an index of pickles, which can run code", kSave},
    Kind{"ggml", ".bin", kGgml, kGgmlAdvice},
    Kind{"", ".ggml", kGgml, kGgmlAdvice},
    Kind{"openvino_", ".xml", "a graph of OpenVINO", kSource},
    Kind{"", ".onnx", "an ONNX graph", kSource},
    Kind{"onnx", "", "an ONNX graph", kSource},
    Kind{"", ".tflite", "a graph of TensorFlow Lite", kSource},
    Kind{"", ".litertlm", "a model of LiteRT", kSource},
    Kind{"", ".pte", "a program of ExecuTorch", kSource},
    Kind{"", ".engine", "an engine of TensorRT", kSource},
    Kind{"", ".mlpackage", "a package of Core ML", kSource},
    Kind{"", ".mlmodel", "a model of Core ML", kSource},
    Kind{"", ".llamafile", "a llamafile, which is a program", "use the GGUF that it was made from"},
    Kind{"consolidated", ".pth", "Meta's own checkpoint, a pickle",
         "convert it by Transformers' convert_llama_weights_to_hf.py"},
    Kind{"consolidated", ".safetensors", "Mistral's own checkpoint, whose tensors have other names",
         "use the files that are named model*.safetensors"},
    Kind{"", ".h5", "weights of TensorFlow", kSave},
    Kind{"", ".ckpt.index", "weights of TensorFlow", kSave},
    Kind{"saved_model", ".pb", "a graph of TensorFlow", kSave},
    Kind{"", ".keras", "a model of Keras", kSave},
    Kind{"", ".npz", "weights of MLX or NumPy", kSave},
    Kind{"", ".distcp", "a distributed checkpoint of PyTorch, a pickle", kSave},
    Kind{"", ".msgpack", "weights of Flax", kSave},
    Kind{"", ".nemo", "an archive of NeMo", kSave},
    Kind{"", ".bin", kPickle, kSave},
    Kind{"", ".pt", kPickle, kSave},
    Kind{"", ".pth", kPickle, kSave},
    Kind{"", ".ckpt", kPickle, kSave},
    Kind{"", ".pkl", kPickle, kSave},
    Kind{"", ".zip", "a zip or a pickle", kSave},
};

const Kind* kind_of(std::string_view name) {
  const auto fits = [&](const Kind& kind) {
    return name.size() >= kind.begin.size() + kind.end.size() && name.starts_with(kind.begin) &&
           name.ends_with(kind.end) && (!kind.end.empty() || kind.begin.ends_with('.') || name == kind.begin);
  };
  const auto* found = std::ranges::find_if(kKinds, fits);
  return found == kKinds.end() ? nullptr : found;
}

[[noreturn]] void refuse(const fs::path& file, std::string_view name, std::string_view advice) {
  throw Error(ErrorCode::kUnsupported, file.string(),
              "found " + std::string(name) + "; only safetensors and GGUF are read: " + std::string(advice));
}

std::string first_bytes(const fs::path& path) {
  std::string bytes(4, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

/// Returns the files of `folder`, and of two levels below it unless a model of its own is there.
std::vector<fs::path> files_of(const fs::path& folder) {
  constexpr int kLevels = 2;
  constexpr std::size_t kMaxFiles = 10000;
  std::vector<fs::path> files, below;
  bool other_model = false;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied);
  std::error_code error;
  for (; entry != fs::recursive_directory_iterator() && files.size() + below.size() < kMaxFiles;
       entry.increment(error)) {
    if (entry.depth() >= kLevels) entry.disable_recursion_pending();
    const fs::path& path = entry->path();
    other_model = other_model || path.extension() == ".gguf" || (entry.depth() > 0 && path.filename() == "config.json");
    (entry.depth() > 0 ? below : files).push_back(path);
  }
  if (!other_model) files.insert(files.end(), below.begin(), below.end());
  std::ranges::sort(files);  // the message names the same file on every file system
  return files;
}

}  // namespace

void refuse_foreign_folder(const fs::path& folder) {
  const std::vector<fs::path> files = files_of(folder);
  const fs::path* first = nullptr;
  const Kind* kind = nullptr;
  for (const fs::path& file : files) {
    const Kind* other = kind_of(file.filename().string());
    if (other == nullptr || (kind != nullptr && other >= kind)) continue;
    kind = other;
    first = &file;
  }
  if (kind != nullptr) refuse(*first, kind->name, kind->advice);
  const auto of_type = [&](std::string_view extension) {
    const auto file = std::ranges::find_if(files, [&](const fs::path& path) { return path.extension() == extension; });
    return file == files.end() ? std::string() : file->lexically_relative(folder).string();
  };
  if (const std::string gguf = of_type(".gguf"); !gguf.empty())
    throw Error(ErrorCode::kInput, folder.string(), "found a folder with " + gguf + ", expected that file itself");
  if (const std::string other = of_type(".safetensors"); !other.empty()) {
    throw Error(ErrorCode::kInput, folder.string(),
                "found " + other +
                    ", expected weights by the names of Transformers: model.safetensors or "
                    "model.safetensors.index.json");
  }
}

void refuse_foreign_file(const fs::path& file) {
  const std::string magic = first_bytes(file);
  if (magic == "GGUF") return;
  if (magic == "lmgg" || magic == "fmgg" || magic == "tjgg") refuse(file, kGgml, kGgmlAdvice);
  const Kind* kind = kind_of(file.filename().string());
  if (kind != nullptr) refuse(file, kind->name, kind->advice);
  const bool pickled = magic.size() > 1 && magic[0] == '\x80' && magic[1] >= 2 && magic[1] <= 5;
  if (pickled || magic == "PK\x03\x04") refuse(file, "a zip or a pickle", kSave);
}

}  // namespace kvs::inline model
