// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/gguf.h"
#include "model/bounded_tokenizer.h"
#include "model/foreign_model.h"
#include "model/hub_cache.h"
#include "model/latent_weights.h"
#include "model/model.h"
#include "model/model_tensors.h"

namespace kvs::inline model {

namespace {

namespace fs = std::filesystem;

TensorRole role_of(char kind) {
  switch (kind) {
    case 'q':
      return TensorRole::kQuery;
    case 'k':
      return TensorRole::kKey;
    case 'v':
      return TensorRole::kValue;
    case 'o':
      return TensorRole::kOutput;
    default:
      throw Error(ErrorCode::kInternal, "projection", "expected q, k, v or o");
  }
}

const TensorArchive& with_tensors(const TensorArchive& archive, const fs::path& path) {
  if (archive.tensors().empty())
    throw Error(ErrorCode::kInput, path.string(), "found no tensors, expected the weights of a model");
  return archive;
}

/// The part that both formats share once the archive is open and the config parsed.
class OpenedSource : public ModelSource {
 public:
  OpenedSource(fs::path path, ModelFormat format, std::unique_ptr<TensorArchive> archive, ParsedConfig parsed)
      : path_(std::move(path)),
        format_(format),
        archive_(std::move(archive)),
        parsed_(std::move(parsed)),
        tensors_(with_tensors(*archive_, path_), format, parsed_) {}

  const ModelConfig& config() const noexcept override { return parsed_.config; }
  const fs::path& path() const noexcept override { return path_; }
  const std::vector<std::string>& notes() const noexcept override { return parsed_.notes; }
  const ModelTensors& tensors() const noexcept override { return tensors_; }
  ModelFormat format() const noexcept override { return format_; }
  const TensorArchive& archive() const noexcept override { return *archive_; }

  const std::string& sha256() const override {
    std::call_once(digest_once_, [this] { digest_ = model_digest(*archive_, tensors_.digest_names()); });
    return digest_;
  }

  std::vector<float> projection(std::size_t layer, char kind) const override {
    const AttentionConfig& attention = config().layer[layer].attention;
    if (attention.is_latent() && kind == 'o')
      return absorbed_output(tensors_.rows(TensorRole::kOutput, layer), tensors_.rows(TensorRole::kLatentValue, layer),
                             attention);
    if (attention.is_latent())
      throw Error(ErrorCode::kUnsupported, path_.string(), "found latent attention, expected projections of each head");
    const TensorRows rows = tensors_.rows(role_of(kind), layer);
    std::vector<float> values(rows.rows() * rows.columns());
    rows.read(0, rows.rows(), values);
    return values;
  }

  std::vector<float> projection_bias(std::size_t layer, char kind) const override {
    return tensors_.bias(role_of(kind), layer);
  }

 private:
  fs::path path_;
  ModelFormat format_;
  std::unique_ptr<TensorArchive> archive_;
  ParsedConfig parsed_;
  ModelTensors tensors_;
  mutable std::once_flag digest_once_;
  mutable std::string digest_;
};

class GgufSource final : public OpenedSource {
 public:
  GgufSource(const fs::path& path, std::unique_ptr<GgufFile> file, ParsedConfig parsed)
      : OpenedSource(path, ModelFormat::kGguf, std::move(file), std::move(parsed)) {}

  std::unique_ptr<Tokenizer> load_tokenizer() const override {
    std::unique_ptr<Tokenizer> tokenizer = load_tokenizer_gguf(static_cast<const GgufFile&>(archive()));
    if (tokenizer->vocabulary_size() != config().vocabulary)
      throw Error(ErrorCode::kInput, path().string(),
                  "found " + std::to_string(tokenizer->vocabulary_size()) + " tokens, expected exactly the " +
                      std::to_string(config().vocabulary) + " rows of the embedding");
    return tokenizer;
  }
};

class FolderSource final : public OpenedSource {
 public:
  using OpenedSource::OpenedSource;

  std::unique_ptr<Tokenizer> load_tokenizer() const override {
    fs::path file = path() / "tokenizer.json";
    const fs::path model = path() / "tokenizer.model";
    const bool has_json = fs::exists(file);
    if (!has_json && !fs::exists(model)) {
      throw Error(ErrorCode::kInput, file.string(),
                  "is missing; expected it or tokenizer.model in the folder of config.json, or use --tokens-file");
    }
    if (!has_json) file = model;
    return bound_tokenizer(has_json ? load_tokenizer_json(file) : load_tokenizer_model(file), config().vocabulary,
                           file.string());
  }
};

/// Returns the weights of a folder as Transformers picks them: one file, otherwise the index of shards.
fs::path weights_of(const fs::path& folder) {
  for (const std::string_view name : {"model.safetensors", "model.safetensors.index.json"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  refuse_foreign_folder(folder);
  throw Error(ErrorCode::kInput, folder.string(),
              "found no weights, expected model.safetensors or model.safetensors.index.json");
}

std::unique_ptr<ModelSource> open_folder(const fs::path& folder) {
  const fs::path config = folder / "config.json";
  if (!fs::exists(config)) {
    refuse_hub_cache(folder);
    if (!fs::exists(folder / "model.safetensors")) refuse_foreign_folder(folder);
    throw Error(ErrorCode::kInput, config.string(), "is missing; expected a Hugging Face folder or a GGUF file");
  }
  ParsedConfig parsed = parse_hf_config(config);
  parsed.config.name = shown_name(fs::canonical(folder).filename().native());
  const fs::path adapter = folder / "adapter_config.json";
  if (fs::exists(adapter)) parsed.notes.push_back(adapter.string() + ": the adapter is not applied to the weights");
  return std::make_unique<FolderSource>(folder, ModelFormat::kHuggingFace, open_safetensors(weights_of(folder)),
                                        std::move(parsed));
}

std::unique_ptr<ModelSource> open_file(const fs::path& path) {
  struct stat status {};
  (void)open_regular(path, status);  // refuses a Git LFS pointer under any name
  refuse_foreign_file(path);
  if (path.extension() == ".safetensors") {
    throw Error(ErrorCode::kInput, path.string(), "found bare weights, expected the folder that also has config.json");
  }
  if (path.extension() == ".json") {
    throw Error(ErrorCode::kInput, path.string(), "found a JSON file, expected the folder with it and the weights");
  }
  std::unique_ptr<GgufFile> file = GgufFile::open(path);
  ParsedConfig parsed = parse_gguf_config(*file);
  return std::make_unique<GgufSource>(path, std::move(file), std::move(parsed));
}

}  // namespace

std::unique_ptr<ModelSource> ModelSource::open(const fs::path& path) {
  struct stat status {};
  if (!find_status(path, status))
    throw Error(ErrorCode::kInput, path.string(), "no such file or folder" + hub_advice(path));
  if (S_ISDIR(status.st_mode)) return open_folder(path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInput, path.string(), "is no regular file, expected a GGUF file or a Hugging Face folder");
  }
  return open_file(path);
}

}  // namespace kvs::inline model
