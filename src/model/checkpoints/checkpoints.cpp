// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/checkpoints.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/nearest.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/python_json.h"

namespace kvs::inline model {

namespace {

constexpr std::array kFormats{&kFp8, &kCompressedTensors, &kModelOpt, &kAwq, &kGptq, &kBitsAndBytes, &kMxfp4};

constexpr std::size_t kModelOptBytes = 1 << 24;

/// ModelOpt's own file, which older versions of it write instead of quantization_config.
std::shared_ptr<const QuantizedWeights> read_own_file(const std::filesystem::path& path,
                                                      std::vector<std::string>& notes) {
  struct stat status {};
  if (!find_status(path, status)) return nullptr;
  const Json json =
      parse_python_json(read_text_file(path, kModelOptBytes), path.string(), {.bytes = kModelOptBytes, .depth = 64});
  return kModelOpt.read(JsonCursor(json, path.string()), notes);
}

}  // namespace

std::shared_ptr<const QuantizedWeights> read_quantization(const JsonCursor& root, const std::filesystem::path& folder,
                                                          std::vector<std::string>& notes) {
  if (!root.has("quantization_config")) return read_own_file(folder / "hf_quant_config.json", notes);
  const JsonCursor config = root.at("quantization_config");
  const bool named = config.has("quant_method");
  const std::string method = named ? config.at("quant_method").string() : "of unknown method";
  std::vector<std::string> methods;
  methods.reserve(kFormats.size());
  for (const CheckpointFormat* format : kFormats) {
    if (named && format->method == method) return format->read(config, notes);
    methods.emplace_back(format->method);
  }
  throw Error(ErrorCode::kUnsupported, config.place(),
              "found quantised weights (" + printable(method, 80) + "), supported are: " + listed(methods) +
                  ", unquantised weights, or a GGUF");
}

std::string module_of(const std::string& name) {
  constexpr std::string_view kEnding = ".weight";
  return name.ends_with(kEnding) ? name.substr(0, name.size() - kEnding.size()) : std::string();
}

void expect_one_of(const JsonCursor& object, std::string_view key, const std::vector<std::string>& supported) {
  if (!object.has(key)) return;
  const JsonCursor value = object.at(key);
  if (std::ranges::find(supported, value.string()) != supported.end()) return;
  throw Error(ErrorCode::kUnsupported, value.place(),
              "found " + describe_json(value.value()) + ", supported are: " + listed(supported));
}

std::size_t expect_number(const JsonCursor& object, std::string_view key, const std::vector<std::size_t>& supported,
                          std::size_t missing) {
  if (!object.has(key)) return missing;
  const JsonCursor value = object.at(key);
  const auto number = static_cast<std::size_t>(value.unsigned_integer());
  if (std::ranges::find(supported, number) != supported.end()) return number;
  std::vector<std::string> names;
  names.reserve(supported.size());
  for (const std::size_t each : supported) names.push_back(std::to_string(each));
  throw Error(ErrorCode::kUnsupported, value.place(),
              "found " + std::to_string(number) + ", supported are: " + listed(names));
}

std::size_t read_group_size(const JsonCursor& object) {
  if (!object.has("group_size")) return 128;
  const std::int64_t size = object.at("group_size").integer(-1, kMaxBlockExtent);
  if (size == 0) object.at("group_size").fail("-1 or more than 0");
  return size < 0 ? 0 : static_cast<std::size_t>(size);
}

BlockSize read_block_size(const JsonCursor& list) {
  if (list.array_size() != 2) list.fail("the rows and columns of a block");
  const auto extent = [&](std::size_t axis) {
    return static_cast<std::size_t>(list.at(axis).integer(1, kMaxBlockExtent));
  };
  return {extent(0), extent(1)};
}

void expect_none(const JsonCursor& object, std::string_view key) {
  if (!object.has(key)) return;
  const Json& value = object.at(key).value();
  if (value == Json(false) || (!value.is_number() && value.empty()) || value == Json("")) return;
  throw Error(ErrorCode::kUnsupported, object.at(key).place(),
              "found " + describe_json(value) + ", which is not supported");
}

const StoredTensor& part_of(const TensorArchive& archive, const StoredTensor& values, const std::string& name) {
  const StoredTensor* part = archive.find(name);
  if (part == nullptr)
    throw Error(ErrorCode::kInput, place_of(archive, values),
                "found no " + printable(name, 120) + ", which these values need");
  return *part;
}

void expect_type(const TensorArchive& archive, const StoredTensor& tensor, const std::vector<std::string>& expected) {
  if (std::ranges::find(expected, tensor.type_name) != expected.end()) return;
  throw Error(ErrorCode::kInput, place_of(archive, tensor),
              "found type " + tensor.type_name + ", expected " + listed(expected, " or "));
}

void expect_shape(const TensorArchive& archive, const StoredTensor& tensor, const std::vector<std::uint64_t>& expected,
                  const std::string& source) {
  if (tensor.shape == expected) return;
  throw Error(ErrorCode::kInput, place_of(archive, tensor),
              "found shape " + shape_text(tensor.shape) + ", expected " + shape_text(expected) + " (" + source + ")");
}

void expect_matrix(const TensorArchive& archive, const StoredTensor& values) {
  if (values.shape.size() == 2) return;
  throw Error(ErrorCode::kUnsupported, place_of(archive, values),
              "found quantised values of " + std::to_string(values.shape.size()) + " dimensions, supported are: 2");
}

}  // namespace kvs::inline model
