#include "io/safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/checked.h"
#include "core/error.h"
#include "io/json.h"

namespace kvs {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian and values are copied as they are");

void check(const NamedTensor& tensor) {
  const std::string where = "tensor \"" + printable(tensor.name, 80) + '"';
  std::optional<std::uint64_t> size = 1;
  for (const std::uint64_t length : tensor.shape)
    if (size) size = checked_multiply(*size, length);
  if (size != tensor.values.size())
    throw Error(ErrorCode::kInternal, where, std::to_string(tensor.values.size()) + " values do not fill its shape");
  const auto bad = std::ranges::find_if_not(tensor.values, [](float value) { return std::isfinite(value); });
  if (bad != tensor.values.end())
    throw Error(ErrorCode::kData, where + ": value " + std::to_string(bad - tensor.values.begin()),
                std::string("found ") + (std::isnan(*bad) ? "NaN" : "infinity") + ", expected a finite number");
}

}  // namespace

std::string safetensors_bytes(std::span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::map<std::string_view, const NamedTensor*> ordered;
  for (const NamedTensor& tensor : tensors) {
    check(tensor);
    if (tensor.name == "__metadata__" || !ordered.emplace(tensor.name, &tensor).second)
      throw Error(ErrorCode::kInternal, "tensor \"" + printable(tensor.name, 80) + '"', "the name is taken");
  }
  Json::object_t members;  // pushed unsearched: operator[] of an ordered object looks at every member
  if (!metadata.empty()) members.emplace_back("__metadata__", metadata);
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : ordered) {
    const std::uint64_t end = offset + tensor->values.size() * sizeof(float);
    members.emplace_back(std::string(name),
                         Json{{"dtype", "F32"}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  std::string header = dump_json(Json(std::move(members)), -1);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  std::string bytes(8 + header.size() + offset, '\0');
  std::memcpy(bytes.data(), &length, 8);
  std::ranges::copy(header, bytes.begin() + 8);
  char* at = bytes.data() + 8 + header.size();
  for (const auto& [name, tensor] : ordered) {
    if (tensor->values.empty()) continue;  // memcpy from null is undefined even for 0 bytes
    std::memcpy(at, tensor->values.data(), tensor->values.size() * sizeof(float));
    at += tensor->values.size() * sizeof(float);
  }
  return bytes;
}

}  // namespace kvs
