// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/mapped_tensors.h"
#include "io/safetensors_parse.h"
#include "io/tensor_archive.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIndexBytes = 100000000;  // equal to the limit of a header

/// One file, or several files that hold the parts of one model.
class SafetensorsArchive final : public TensorArchive {
 public:
  void add_file(const fs::path& path) {
    MappedFile file(path);
    std::vector<StoredTensor> tensors = parse_safetensors(file.bytes(), path.native());
    mapped_.add(std::move(file), std::move(tensors));
  }
  /// Call it after the last add_file(). @throws Error kInput if two files hold a tensor with the same name.
  void finish() { mapped_.finish(); }
  void warn(std::string text) { warnings_.push_back(std::move(text)); }

  std::span<const StoredTensor> tensors() const noexcept override { return mapped_.tensors(); }
  const fs::path& file_of(const StoredTensor& tensor) const noexcept override { return mapped_.file_of(tensor); }
  void check_unchanged() const override { mapped_.check_unchanged(); }
  void release(std::span<const std::byte> bytes) const noexcept override { mapped_.release(bytes); }
  std::span<const std::string> warnings() const noexcept override { return warnings_; }

 private:
  MappedTensors mapped_;
  std::vector<std::string> warnings_;
};

/// Refuses links that leave the model: a hostile index may come with a link to any file of this machine. Allows links
/// inside the model's folder and the layout of Hugging Face's cache, where snapshots/REVISION/FILE links to
/// ../../blobs/DIGEST.
void refuse_escaping_link(const fs::path& folder, const std::string& name) {
  struct stat status {};
  const fs::path shard = folder / name;
  if (!find_link_status(shard, status) || !S_ISLNK(status.st_mode)) return;
  std::error_code error;
  const fs::path home = fs::weakly_canonical(folder, error), target = fs::weakly_canonical(shard, error);
  if (error) throw Error(ErrorCode::kInput, shard.native(), "cannot follow the link: " + error.message());
  const auto inside = [&](const fs::path& parent) {
    return std::mismatch(parent.begin(), parent.end(), target.begin(), target.end()).first == parent.end();
  };
  if (inside(home)) return;
  const fs::path snapshots = home.parent_path();
  if (snapshots.filename() == "snapshots" && target.parent_path() == snapshots.parent_path() / "blobs") return;
  throw Error(ErrorCode::kInput, shard.native(),
              "a link to " + target.native() + ", expected a file inside the model's folder");
}

/// Only warns, because as in Transformers the shards' contents count. The config refuses a model that lacks a tensor.
void warn_of_misplaced(SafetensorsArchive& archive, const SafetensorsIndex& index, const fs::path& path) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> misplaced;
  for (const auto& [name, shard] : index.shard_of) {
    const StoredTensor* tensor = archive.find(name);
    if (tensor == nullptr || archive.file_of(*tensor).filename() != shard) misplaced.push_back(printable(name, 80));
  }
  if (misplaced.empty()) return;
  std::string names;
  for (std::size_t n = 0; n < std::min(misplaced.size(), kShown); ++n) names += (n > 0 ? ", " : "") + misplaced[n];
  archive.warn(path.native() + ": " + std::to_string(misplaced.size()) +
               (misplaced.size() == 1 ? " tensor is" : " tensors are") + " not in the shard where the index puts " +
               (misplaced.size() == 1 ? "it: " : "them: ") + names + (misplaced.size() > kShown ? ", ..." : ""));
}

std::unique_ptr<TensorArchive> open_index(const fs::path& path) {
  const SafetensorsIndex index = parse_safetensors_index(read_text_file(path, kMaxIndexBytes), path.native());
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : index.shard_of) shards.insert(shard);
  auto archive = std::make_unique<SafetensorsArchive>();
  for (const std::string& shard : shards) {
    refuse_escaping_link(folder, shard);
    archive->add_file(folder / shard);
  }
  archive->finish();
  warn_of_misplaced(*archive, index, path);
  std::uint64_t total = 0;
  for (const StoredTensor& tensor : archive->tensors()) total += tensor.bytes.size();
  if (index.total_size && *index.total_size != total)
    archive->warn(path.native() + ": metadata.total_size is " + std::to_string(*index.total_size) +
                  ", the tensors hold " + std::to_string(total) + " bytes");
  return archive;
}

}  // namespace

std::unique_ptr<TensorArchive> open_safetensors(const fs::path& path) {
  if (path.extension() == ".json") return open_index(path);
  auto archive = std::make_unique<SafetensorsArchive>();
  archive->add_file(path);
  archive->finish();
  return archive;
}

}  // namespace kvs::inline io
