#include "model/foreign_model.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace kvs {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSave = "load it with its own program and save it by Transformers' save_pretrained()";
constexpr std::string_view kPickle = "a pickle, which can run code";

/// Files of one kind begin and end like this.
struct Kind {
  std::string_view begin, end, name, advice;
};

/// Kinds whose files accompany others come first: an adapter's folder may hold pickles, one of OpenVINO .bin files.
constexpr std::array kKinds{
    Kind{"adapter_", ".json", "the config of an adapter (LoRA and the like), which is no whole model",
         "merge it into its base model: PEFT's merge_and_unload(), then save_pretrained()"},
    Kind{"adapter_model.", "", "the weights of an adapter (LoRA and the like), which is no whole model",
         "merge it into its base model: PEFT's merge_and_unload(), then save_pretrained()"},
    Kind{"model_index", ".json", "a pipeline of Diffusers", "no language model is in it"},
    Kind{"pytorch_model", ".bin", kPickle, kSave},
    Kind{"openvino_", ".xml", "a graph of OpenVINO", "use the model that it was made from"},
    Kind{"", ".onnx", "an ONNX graph", "use the model that it was made from"},
    Kind{"onnx", "", "an ONNX graph", "use the model that it was made from"},
    Kind{"", ".tflite", "a graph of TensorFlow Lite", "use the model that it was made from"},
    Kind{"", ".engine", "an engine of TensorRT", "use the model that it was made from"},
    Kind{"", ".mlpackage", "a package of Core ML", "use the model that it was made from"},
    Kind{"consolidated", ".pth", "Meta's own checkpoint, a pickle",
         "convert it by Transformers' convert_llama_weights_to_hf.py"},
    Kind{"consolidated", ".safetensors", "Mistral's own checkpoint, whose tensors have other names",
         "use the files that are named model*.safetensors"},
    Kind{"", ".h5", "weights of TensorFlow", kSave},
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

}  // namespace

void refuse_foreign_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);  // the same file is named whatever the file system's order
  const fs::path* first = nullptr;
  const Kind* kind = nullptr;
  for (const fs::path& file : files) {
    const Kind* other = kind_of(file.filename().string());
    if (other == nullptr || (kind != nullptr && other >= kind)) continue;
    kind = other;
    first = &file;
  }
  if (kind != nullptr) refuse(*first, kind->name, kind->advice);
  const auto gguf = std::ranges::find(files, ".gguf", [](const fs::path& file) { return file.extension().string(); });
  if (gguf == files.end()) return;
  throw Error(ErrorCode::kInput, folder.string(),
              "found a folder with " + gguf->filename().string() + ", expected that file itself");
}

void refuse_foreign_file(const fs::path& file) {
  const std::string magic = first_bytes(file);
  if (magic == "GGUF") return;
  const Kind* kind = kind_of(file.filename().string());
  if (kind != nullptr) refuse(file, kind->name, kind->advice);
  if (magic == "PK\x03\x04" || magic.starts_with("\x80\x02")) refuse(file, "a zip or a pickle", kSave);
}

}  // namespace kvs
