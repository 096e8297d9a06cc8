// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_writer.h"

#include <set>
#include <vector>

#include "core/error.h"
#include "io/file.h"
#include "io/json.h"

namespace kvs::inline io {
namespace {

/// The tensors' entries of a file's header.
class Header {
 public:
  explicit Header(const SafetensorsMetadata& metadata) {
    if (!metadata.empty()) members_.emplace_back("__metadata__", metadata);
  }

  void add(const std::string& name, std::string_view dtype, const std::vector<std::uint64_t>& shape,
           std::uint64_t bytes) {
    if (!names_.insert(name).second)
      throw Error(ErrorCode::kInternal, "tensor \"" + printable(name, 80) + '"', "the name is taken");
    members_.emplace_back(name, Json{{"dtype", dtype}, {"shape", shape}, {"data_offsets", {offset_, offset_ + bytes}}});
    offset_ += bytes;
  }

  /// Writes the header, padded with blanks to 8 bytes, and its length.
  void write(OutputFile& out) {
    std::string header = dump_json(Json(std::move(members_)), -1);
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = header.size();
    out.write(std::as_bytes(std::span(&length, 1)));
    out.write(header);
  }

 private:
  Json::object_t members_;  // emplace_back, because operator[] of an ordered object searches all members
  std::set<std::string> names_{"__metadata__"};
  std::uint64_t offset_ = 0;
};

/// Returns the number of tensors in each shard. Each shard takes as many as fit.
std::vector<std::size_t> shard_sizes(std::span<const OutputTensor> tensors, std::uint64_t most) {
  std::vector<std::size_t> sizes{0};
  std::uint64_t held = 0;
  for (const OutputTensor& tensor : tensors) {
    const std::uint64_t bytes = tensor.bytes();
    if (sizes.back() > 0 && held + bytes > most) {
      sizes.push_back(0);
      held = 0;
    }
    ++sizes.back();
    held += bytes;
  }
  return sizes;
}

std::string five_digits(std::size_t number) {
  const std::string digits = std::to_string(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

}  // namespace

std::string_view safetensors_name(DType type) {
  switch (type) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kF64:
      break;
  }
  throw Error(ErrorCode::kInternal, "safetensors", "expected f32, bf16 or f16");
}

void write_safetensors(const std::filesystem::path& file, std::span<const OutputTensor> tensors,
                       const SafetensorsMetadata& metadata, std::function<void(std::uint64_t)> progress) {
  Header header(metadata);
  for (const OutputTensor& tensor : tensors)
    header.add(tensor.name, safetensors_name(tensor.type), tensor.shape, tensor.bytes());
  OutputFile out(file, std::move(progress));
  header.write(out);
  for (const OutputTensor& tensor : tensors) out.write(tensor);
}

void write_stored_tensors(const std::filesystem::path& file, std::span<const StoredTensor> tensors) {
  Header header({});
  for (const StoredTensor& tensor : tensors)
    header.add(tensor.name, tensor.type_name, tensor.shape, tensor.bytes.size());
  OutputFile out(file);
  header.write(out);
  for (const StoredTensor& tensor : tensors) out.write(tensor.bytes);
}

void write_safetensors_shards(const std::filesystem::path& folder, std::span<const OutputTensor> tensors,
                              const std::function<void(std::uint64_t)>& progress, std::uint64_t most) {
  const SafetensorsMetadata metadata{{"format", "pt"}};  // Transformers requires it
  const std::vector<std::size_t> sizes = shard_sizes(tensors, most);
  Json::object_t weight_map;
  std::uint64_t total = 0;
  std::size_t first = 0;
  for (std::size_t shard = 0; shard < sizes.size(); ++shard) {
    const std::string name =
        sizes.size() == 1 ? "model.safetensors"
                          : "model-" + five_digits(shard + 1) + "-of-" + five_digits(sizes.size()) + ".safetensors";
    const auto part = tensors.subspan(first, sizes[shard]);
    for (const OutputTensor& tensor : part) {
      weight_map.emplace_back(tensor.name, name);
      total += tensor.bytes();
    }
    write_safetensors(folder / name, part, metadata, progress);
    first += sizes[shard];
  }
  if (sizes.size() == 1) return;
  const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", Json(std::move(weight_map))}};
  write_file_atomically(folder / "model.safetensors.index.json", dump_json(index) + "\n", false);
}

}  // namespace kvs::inline io
