// SPDX-License-Identifier: Apache-2.0
#include "calibrate/config/tensors.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "io/json.h"

namespace kvs::inline calibrate {

FactorReader reader_of(const std::vector<FactorTensor>& tensors) {
  return [&tensors](const std::string& name, const std::vector<std::uint64_t>& shape) {
    const auto found = std::ranges::find(tensors, name, &FactorTensor::name);
    if (found == tensors.end() || found->shape != shape)
      throw Error(ErrorCode::kInternal, "factors", "no tensor " + name + " of the expected shape");
    return found->values;
  };
}

FactorReader reader_of(const TensorArchive& archive, const std::filesystem::path& path) {
  return [&archive, path](const std::string& name, const std::vector<std::uint64_t>& shape) {
    const StoredTensor* tensor = archive.find(name);
    if (tensor == nullptr || tensor->shape != shape)
      throw Error(ErrorCode::kInput, path.string() + ": tensor " + name,
                  "found " + (tensor == nullptr ? "none" : "shape " + Json(tensor->shape).dump()) + ", expected " +
                      Json(shape).dump());
    std::vector<float> values(tensor->rows() * tensor->columns());
    read_rows(*tensor, 0, tensor->rows(), values);
    archive.release(tensor->bytes);
    const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (bad != values.end())
      throw Error(ErrorCode::kData, path.string() + ": tensor " + name,
                  "found " + std::to_string(*bad) + " at index " + std::to_string(bad - values.begin()) +
                      ", expected finite numbers");
    return values;
  };
}

}  // namespace kvs::inline calibrate
