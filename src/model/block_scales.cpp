#include "model/block_scales.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest.h"
#include "model/tensor_shape.h"

namespace kvs::inline model {

namespace {

constexpr std::string_view kEightBits = "F8_E4M3";
constexpr std::size_t kMaxBlock = 1 << 20;

std::string place(const TensorArchive& archive, const StoredTensor& tensor) {
  return archive.file_of(tensor).string() + ": tensor " + printable(tensor.name, 120);
}

/// Refuses other values of a key than those listed.
void expect_one_of(const JsonCursor& object, std::string_view key, const std::vector<std::string>& supported) {
  if (!object.has(key)) return;
  const JsonCursor value = object.at(key);
  if (std::ranges::find(supported, value.string()) != supported.end()) return;
  throw Error(ErrorCode::kUnsupported, value.place(),
              "found " + describe_json(value.value()) + ", supported are: " + listed(supported));
}

bool is_one(const std::vector<std::uint64_t>& shape) {
  return std::ranges::all_of(shape, [](std::uint64_t extent) { return extent == 1; });
}

std::size_t blocks(std::size_t values, std::size_t block) { return (values + block - 1) / block; }

}  // namespace

std::optional<ScaledWeights> read_quantization(const JsonCursor& root, std::vector<std::string>& notes) {
  if (!root.has("quantization_config")) return std::nullopt;
  const JsonCursor config = root.at("quantization_config");
  // compressed-tensors without groups of weights: only the cache is quantised.
  if (config.has("config_groups") && config.at("config_groups").value() == Json::object()) return std::nullopt;
  const std::string method = config.has("quant_method") ? config.at("quant_method").string() : "of unknown method";
  if (method != "fp8") {
    throw Error(ErrorCode::kUnsupported, config.place(),
                "found quantised weights (" + printable(method, 80) +
                    "), supported are: F32, F16, BF16, F8_E4M3 with quant_method fp8, or a GGUF");
  }
  expect_one_of(config, "fmt", {"e4m3"});
  expect_one_of(config, "scale_fmt", {"float", "ue8m0"});
  expect_one_of(config, "activation_scheme", {"dynamic", "static"});
  notes.push_back(config.place() + ": the weights are decoded; activations are not quantised");
  if (!config.has("weight_block_size")) return ScaledWeights{};
  const JsonCursor size = config.at("weight_block_size");
  if (size.array_size() != 2) size.fail("the rows and columns of a block");
  const auto extent = [&](std::size_t axis) { return static_cast<std::size_t>(size.at(axis).integer(1, kMaxBlock)); };
  return ScaledWeights{extent(0), extent(1)};
}

BlockScales::BlockScales(const TensorArchive& archive, const StoredTensor& weight, const StoredTensor& scales,
                         const ScaledWeights& scheme)
    : scales_(scales),
      block_rows_(scheme.rows == 0 ? std::max<std::size_t>(1, weight.rows()) : scheme.rows),
      block_columns_(scheme.columns == 0 ? std::max<std::size_t>(1, weight.columns()) : scheme.columns) {
  if (weight.shape.size() != 2) {
    throw Error(ErrorCode::kUnsupported, place(archive, weight),
                "found F8_E4M3 values of " + std::to_string(weight.shape.size()) + " dimensions, supported are: 2");
  }
  const std::size_t rows = blocks(weight.rows(), block_rows_), columns = blocks(weight.columns(), block_columns_);
  const bool fits = scheme.rows == 0 ? is_one(scales.shape) : scales.shape == std::vector<std::uint64_t>{rows, columns};
  if (!fits) {
    const std::vector<std::uint64_t> expected{rows, columns};
    throw Error(ErrorCode::kInput, place(archive, scales),
                "found shape " + shape_text(scales.shape) + ", expected " + shape_text(expected) +
                    ", a scale for each block of " + printable(weight.name, 120));
  }
  if (scales.type_name == "U8") scales_.type = element_type_of_safetensors("F8_E8M0");
  if (scales_.type == nullptr || scales.type_name == kEightBits) {
    throw Error(ErrorCode::kUnsupported, place(archive, scales),
                "found type " + scales.type_name + ", supported are: F32, F16, BF16, F64, F8_E8M0, U8");
  }
}

void BlockScales::multiply(std::size_t first, std::size_t count, std::span<float> values) const {
  if (count == 0) return;
  const std::size_t width = values.size() / count;
  std::vector<float> scale(static_cast<std::size_t>(scales_.columns()));
  for (std::size_t row = first; row < first + count; ++row) {
    if (row == first || row % block_rows_ == 0) read_rows(scales_, row / block_rows_, 1, scale);
    const std::span<float> own = values.subspan((row - first) * width, width);
    for (std::size_t begin = 0; begin < width; begin += block_columns_) {
      const float factor = scale[begin / block_columns_];
      for (float& value : own.subspan(begin, std::min(block_columns_, width - begin))) value *= factor;
    }
  }
}

std::string scales_name(const std::string& weight) { return weight + "_scale_inv"; }

std::optional<BlockScales> find_scales(const TensorArchive& archive, const StoredTensor& weight,
                                       const std::optional<ScaledWeights>& scheme) {
  const bool scaled = weight.type_name == kEightBits;
  if (!scaled && !scheme) return std::nullopt;
  if (!scheme) {
    throw Error(ErrorCode::kUnsupported, place(archive, weight),
                "found type F8_E4M3, which is read with a quantization_config in config.json only");
  }
  const std::string name = scales_name(weight.name);
  const StoredTensor* scales = archive.find(name);
  if (scaled && scales != nullptr) return BlockScales(archive, weight, *scales, *scheme);
  if (!scaled && scales == nullptr) return std::nullopt;
  if (scales == nullptr)
    throw Error(ErrorCode::kInput, place(archive, weight), "found F8_E4M3 values, expected their scales " + name);
  throw Error(ErrorCode::kInput, place(archive, weight),
              "found type " + weight.type_name + " beside " + name + ", expected F8_E4M3");
}

}  // namespace kvs::inline model
