// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_archive.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "io/digest.h"

namespace kvs::inline io {
namespace {

constexpr std::size_t kDigestBytes = 4UL << 20;  // bytes that are digested and then released

void update_number(Sha256& digest, std::uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
  digest.update(bytes);
}

void update_text(Sha256& digest, std::string_view text) {
  update_number(digest, text.size());
  digest.update(text);
}

}  // namespace

std::uint64_t StoredTensor::rows() const noexcept {
  if (shape.empty()) return 1;
  return std::accumulate(shape.begin(), shape.end() - 1, std::uint64_t{1}, std::multiplies<>());
}

std::uint64_t StoredTensor::columns() const noexcept { return shape.empty() ? 1 : shape.back(); }

const StoredTensor* TensorArchive::find(std::string_view name) const noexcept {
  const auto all = tensors();
  const auto found = std::ranges::lower_bound(all, name, {}, &StoredTensor::name);
  return found != all.end() && found->name == name ? &*found : nullptr;
}

void read_rows(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count, std::span<float> out) {
  const std::string where = "tensor \"" + printable(tensor.name, 80) + '"';
  if (tensor.type == nullptr)
    throw Error(ErrorCode::kUnsupported, where, "found element type " + tensor.type_name + ", which is not supported");
  const std::uint64_t rows = tensor.rows(), columns = tensor.columns();
  if (first > rows || count > rows - first || out.size() != count * columns)
    throw Error(ErrorCode::kInternal, where,
                "rows " + std::to_string(first) + " + " + std::to_string(count) + " of " + std::to_string(rows) +
                    " into " + std::to_string(out.size()) + " values");
  // The parsers checked that a row is a whole number of blocks and that rows · columns values fill `bytes`.
  const std::uint64_t row_blocks = columns / tensor.type->block_values;
  const auto bytes = tensor.bytes.subspan(first * row_blocks * tensor.type->block_bytes);
  tensor.type->decode(bytes.data(), count * row_blocks, out.data());
}

std::string model_digest(const TensorArchive& archive, std::span<const std::string> names) {
  std::vector<std::string_view> ordered(names.begin(), names.end());
  std::sort(ordered.begin(), ordered.end());
  ordered.erase(std::unique(ordered.begin(), ordered.end()), ordered.end());
  Sha256 digest;
  for (const std::string_view name : ordered) {
    const StoredTensor* tensor = archive.find(name);
    if (tensor == nullptr) throw Error(ErrorCode::kInput, "tensor \"" + printable(name, 80) + '"', "not in the model");
    update_text(digest, tensor->name);
    update_text(digest, tensor->type_name);
    update_number(digest, tensor->shape.size());
    for (const std::uint64_t length : tensor->shape) update_number(digest, length);
    update_number(digest, tensor->bytes.size());
    for (std::size_t at = 0; at < tensor->bytes.size(); at += kDigestBytes) {
      const auto piece = tensor->bytes.subspan(at, std::min(kDigestBytes, tensor->bytes.size() - at));
      digest.update(piece);
      archive.release(piece);
    }
  }
  return digest.finish();
}

}  // namespace kvs::inline io
