// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/compressed_scheme.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/checked.h"
#include "core/error.h"
#include "core/nearest.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/row_codes.h"

namespace kvs::inline model {

namespace {

using Codes = CompressedScheme::Codes;

/// A value of `format`, with the types of weights that it stores.
struct Format {
  std::string_view name;
  bool integers;
  std::int64_t least_bits, most_bits;
  std::int64_t group;  // 0: any strategy
  Codes codes;
};
constexpr std::array kFormatsOfWeights{Format{"float-quantized", false, 8, 8, 0, Codes::kE4m3},
                                       Format{"naive-quantized", false, 8, 8, 0, Codes::kE4m3},
                                       Format{"int-quantized", true, 1, 8, 0, Codes::kI8},
                                       Format{"naive-quantized", true, 1, 8, 0, Codes::kI8},
                                       Format{"pack-quantized", true, 1, kMostBits, 0, Codes::kPacked},
                                       Format{"nvfp4-pack-quantized", false, 4, 4, 16, Codes::kNvFp4},
                                       Format{"mxfp4-pack-quantized", false, 4, 4, 32, Codes::kMxFp4},
                                       Format{"mxfp8-quantized", false, 8, 8, 32, Codes::kMxFp8}};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// @param weights  the object `weights` of a group
const Format& format_of(const JsonCursor& group, const JsonCursor& weights, const std::string& name) {
  std::vector<std::string> supported;
  bool known = false;
  const std::string type = weights.has("type") ? lower(weights.at("type").string()) : "int";
  for (const Format& format : kFormatsOfWeights) {
    if (std::ranges::find(supported, format.name) == supported.end()) supported.emplace_back(format.name);
    known = known || format.name == name;
    if (format.name == name && type == (format.integers ? "int" : "float")) return format;
  }
  if (known)
    throw Error(ErrorCode::kUnsupported, weights.place(),
                "found weights of type " + printable(type, 80) + ", which " + name + " does not store");
  throw Error(ErrorCode::kUnsupported, group.place(),
              "found format " + printable(name, 80) + ", supported are: " + listed(supported));
}

std::string strategy_of(const JsonCursor& weights, std::int64_t group_size) {
  if (weights.has("strategy")) return lower(weights.at("strategy").string());
  return group_size > 0 ? "group" : group_size < 0 ? "channel" : "tensor";
}

/// "128x128" or [128, 128].
BlockSize read_block(const JsonCursor& weights) {
  const JsonCursor block = weights.at("block_structure");
  if (block.value().is_string()) {
    const std::string& text = block.string();
    const std::size_t cross = text.find('x');
    const auto rows = parse_integer<std::uint32_t>(text.substr(0, cross));
    const auto columns = parse_integer<std::uint32_t>(cross == std::string::npos ? "" : text.substr(cross + 1));
    if (!rows || !columns || *rows == 0 || *columns == 0) block.fail("ROWSxCOLUMNS");
    return {*rows, *columns};
  }
  return read_block_size(block);
}

void read_blocks(const JsonCursor& weights, CompressedScheme& scheme) {
  const std::int64_t size = weights.has("group_size") ? weights.at("group_size").integer(-1, kMaxBlockExtent) : 0;
  const std::string strategy = strategy_of(weights, size);
  scheme.grouped = strategy == "group" || strategy == "tensor_group";
  scheme.packed_zeros = scheme.codes == Codes::kPacked && (strategy == "group" || strategy == "channel");
  if (scheme.grouped) {
    if (size < 1) weights.fail("a group_size above 0 with strategy " + strategy);
    scheme.block = {1, static_cast<std::size_t>(size)};
  } else if (strategy == "channel") {
    scheme.block = {1, 0};
  } else if (strategy == "block") {
    scheme.block = read_block(weights);
  } else if (strategy != "tensor") {
    throw Error(
        ErrorCode::kUnsupported, weights.place(),
        "found strategy " + printable(strategy, 80) + ", supported are: tensor, channel, group, tensor_group, block");
  }
}

/// Columns are reordered if "actorder" is group, which older versions also write as true or dynamic.
bool is_reordered(const JsonCursor& weights) {
  if (!weights.has("actorder")) return false;
  const JsonCursor order = weights.at("actorder");
  if (order.value().is_boolean()) return order.boolean();
  const std::string name = lower(order.string());
  return name == "group" || name == "dynamic";
}

}  // namespace

CompressedScheme read_compressed_scheme(const JsonCursor& group, const std::string& format) {
  const JsonCursor weights = group.at("weights");
  CompressedScheme scheme;
  scheme.format = group.has("format") ? group.at("format").string() : format;
  const Format& row = format_of(group, weights, scheme.format);
  scheme.codes = row.codes;
  const std::int64_t bits = weights.has("num_bits") ? weights.at("num_bits").integer() : 8;
  if (bits < row.least_bits || bits > row.most_bits)
    throw Error(ErrorCode::kUnsupported, weights.place(),
                "found " + std::to_string(bits) + " bits with " + scheme.format +
                    ", supported are: " + std::to_string(row.least_bits) +
                    (row.least_bits == row.most_bits ? "" : " to " + std::to_string(row.most_bits)));
  scheme.bits = static_cast<std::size_t>(bits);
  read_blocks(weights, scheme);
  if (row.group != 0 && (!scheme.grouped || std::cmp_not_equal(scheme.block.columns, row.group)))
    throw Error(ErrorCode::kUnsupported, weights.place(),
                "found another strategy, supported with " + scheme.format + ": groups of " + std::to_string(row.group));
  scheme.symmetric = !weights.has("symmetric") || weights.at("symmetric").boolean();
  if (!scheme.symmetric && !row.integers)
    throw Error(ErrorCode::kUnsupported, weights.place(), "found zero points of weights that are not integers");
  scheme.reordered = is_reordered(weights);
  if (scheme.reordered && scheme.codes != Codes::kPacked)
    throw Error(ErrorCode::kUnsupported, weights.place(), "found reordered columns, supported with: pack-quantized");
  scheme.targets = read_patterns(group, "targets", ModulePattern::of_compressed_tensors);
  return scheme;
}

}  // namespace kvs::inline model
