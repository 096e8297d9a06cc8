// SPDX-License-Identifier: Apache-2.0
#include "caches/kv_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "caches/cache_shape.h"
#include "caches/parameters.h"
#include "core/error.h"

namespace kvs::inline caches {
namespace {

/// The rotation of a row before it is coded.
enum class Rotation {
  kNone,
  kByEngine,   // llama.cpp's: as `rotate` says, if head_dim is a multiple of 64
  kHead,       // of the whole head
  kSignedHead  // signs first, over the largest power of two that divides head_dim
};

/// A storage type, by the engine's name for it.
struct StorageType {
  std::string_view name;
  RowKind k, v;
  std::size_t block = 1;  // head_dim must be a multiple of it
  Rotation k_rotation = Rotation::kNone, v_rotation = Rotation::kNone;
  std::size_t plain_ends = 0;  // layers at both ends that the engine keeps at 16 bits by default
};

constexpr StorageType of_both(std::string_view name, RowKind kind, std::size_t block = 1,
                              Rotation rotation = Rotation::kNone) {
  return {name, kind, kind, block, rotation, rotation};
}

constexpr StorageType ggml(std::string_view name, RowKind kind) { return of_both(name, kind, 32, Rotation::kByEngine); }

constexpr StorageType turboquant(std::string_view name, RowKind k, RowKind v) {
  const Rotation rotation = k == RowKind::kE4m3 ? Rotation::kNone : Rotation::kHead;
  return {name, k, v, 16, rotation, Rotation::kNone, 2};
}

constexpr std::array kStorageTypes{of_both("none", RowKind::kF32),
                                   of_both("f16", RowKind::kF16),
                                   of_both("bf16", RowKind::kBF16),
                                   ggml("q8_0", RowKind::kQ8_0),
                                   ggml("q5_1", RowKind::kQ5_1),
                                   ggml("q5_0", RowKind::kQ5_0),
                                   ggml("q4_1", RowKind::kQ4_1),
                                   ggml("q4_0", RowKind::kQ4_0),
                                   ggml("iq4_nl", RowKind::kIq4Nl),
                                   of_both("fp8", RowKind::kE4m3),
                                   of_both("fp8_e5m2", RowKind::kE5m2),
                                   of_both("nvfp4", RowKind::kNvFp4, 16),
                                   of_both("int8_per_token_head", RowKind::kInt8Row),
                                   of_both("fp8_per_token_head", RowKind::kE4m3Row),
                                   of_both("int4_per_token_head", RowKind::kInt4Row, 2, Rotation::kSignedHead),
                                   turboquant("turboquant_k8v4", RowKind::kE4m3, RowKind::kTurboValue4),
                                   turboquant("turboquant_4bit_nc", RowKind::kTurboKey4, RowKind::kTurboValue4),
                                   turboquant("turboquant_k3v4_nc", RowKind::kTurboKey3, RowKind::kTurboValue4),
                                   turboquant("turboquant_3bit_nc", RowKind::kTurboKey3, RowKind::kTurboValue3),
                                   of_both("quarot4", RowKind::kQuarot4, 2, Rotation::kHead)};

/// Returns the names, after `first` unless it is empty.
std::vector<std::string_view> names_of_types(std::string_view first) {
  std::vector<std::string_view> names;
  if (!first.empty()) names.push_back(first);
  for (const StorageType& kind : kStorageTypes) names.push_back(kind.name);
  return names;
}

[[noreturn]] void refuse_head(const StorageType& kind, std::size_t head_dim, const std::string& expected) {
  throw Error(ErrorCode::kUnsupported, std::string(kind.name),
              "found a head_dim of " + std::to_string(head_dim) + ", expected " + expected);
}

/// Returns the number of values that are rotated together; 0: no rotation.
std::size_t run_of(const StorageType& kind, Rotation rotation, std::size_t head_dim, bool engine_rotates, bool keys) {
  constexpr std::size_t kGgmlRun = 64, kMaxSigns = 256;
  const std::size_t power = std::size_t{1} << std::countr_zero(head_dim);  // the largest that divides it
  switch (rotation) {
    case Rotation::kNone:
      return 0;
    case Rotation::kByEngine:
      if (!engine_rotates || head_dim % kGgmlRun != 0) return 0;
      return keys ? power : kGgmlRun;
    case Rotation::kHead:
      if (power != head_dim) refuse_head(kind, head_dim, "a power of two");
      return head_dim;
    case Rotation::kSignedHead:
      return std::min(power, kMaxSigns);
  }
  return 0;
}

RowFormat format_of(const StorageType& kind, bool keys, bool engine_rotates, const LayerShape& shape,
                    std::size_t adjacent_pairs) {
  if (shape.head_dim % kind.block != 0)
    refuse_head(kind, shape.head_dim, "a multiple of " + std::to_string(kind.block));
  const Rotation rotation = keys ? kind.k_rotation : kind.v_rotation;
  RowFormat format{.kind = keys ? kind.k : kind.v};
  format.hadamard = static_cast<std::uint32_t>(run_of(kind, rotation, shape.head_dim, engine_rotates, keys));
  format.signs = rotation == Rotation::kSignedHead;
  constexpr std::size_t kGgmlBlock = 32;
  if (keys && kind.block == kGgmlBlock) format.adjacent_pairs = static_cast<std::uint32_t>(adjacent_pairs);
  return format;
}

/// Returns the layers that the engine keeps at 16 bits.
std::vector<std::size_t> ends(const StorageType& kind, std::size_t layers) {
  std::vector<std::size_t> indices;
  for (std::size_t layer = 0; layer < layers; ++layer)
    if (layer < kind.plain_ends || layer + kind.plain_ends >= layers) indices.push_back(layer);
  return indices;
}

/// @param heads  rows are those of heads, which a type may rotate as a whole
KvTypes read_kinds(Parameters& parameters, std::size_t layer, const CacheShape& shape, bool heads) {
  static constexpr std::string_view kLayouts[] = {"engine", "hf"};
  static const std::vector<std::string_view> kNames = names_of_types(""), kSides = names_of_types("type");
  const std::size_t both = parameters.choice("type", "storage type of keys and values", kNames);
  const auto side = [&](std::string_view name, std::string_view help) -> const StorageType& {
    const std::size_t word = parameters.choice(name, help, kSides);
    return kStorageTypes[word == 0 ? both : word - 1];
  };
  const StorageType &k = side("type_k", "storage type of keys"), &v = side("type_v", "storage type of values");
  for (const auto& [kind, rotation] : {std::pair(&k, k.k_rotation), std::pair(&v, v.v_rotation)})
    if (!heads && rotation > Rotation::kByEngine)
      throw Error(ErrorCode::kUnsupported, "type",
                  "found " + std::string(kind->name) +
                      ", which rotates whole heads, expected another for rows that are not those of a head");
  const bool rotates = parameters.on_off("rotate", "use the Hadamard rotation of llama.cpp", true);
  const bool engine_order = parameters.choice("layout", "order of the channels in a block of llama.cpp", kLayouts) == 0;
  const std::size_t adjacent = engine_order ? shape.adjacent_pairs : 0;
  const LayerShape& heads_of = shape.layers.at(layer);
  KvTypes types{{format_of(k, true, rotates, heads_of, adjacent)},
                {format_of(v, false, rotates, heads_of, adjacent)},
                heads_of.one_row,
                heads_of.latent};
  constexpr double kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  const auto scales = [&](std::string_view name, std::string_view help) {
    const std::vector<double> given = parameters.values(name, help, 1, kLeast, kMost, heads_of.kv_heads);
    return std::vector<float>(given.begin(), given.end());
  };
  types.k.scales = scales("scale_k", "scale of keys in fp8, fp8_e5m2 or nvfp4: one value, or one per KV head");
  types.v.scales = scales("scale_v", "scale of values in fp8, fp8_e5m2 or nvfp4: one value, or one per KV head");
  if (heads_of.latent && types.k.format.kind != types.v.format.kind)
    parameters.refuse(
        "type_v", "found another than of keys, expected the same: a row of latent attention is key and value at once");
  const StorageType& wider = k.plain_ends > v.plain_ends ? k : v;
  const auto skipped = parameters.indices("type_skip_layers", "layers that stay at 16 bits",
                                          ends(wider, parameters.layers()), parameters.layers());
  return std::ranges::find(skipped, layer) == skipped.end()
             ? types
             : KvTypes{{{.kind = RowKind::kF16}}, {{.kind = RowKind::kF16}}, heads_of.one_row, heads_of.latent};
}

}  // namespace

KvTypes plain_types(const LayerShape& layer) { return {{}, {}, layer.one_row, layer.latent}; }

bool is_kv_type(std::string_view name) noexcept {
  return std::ranges::find(kStorageTypes, name, &StorageType::name) != kStorageTypes.end();
}

KvTypes read_kv_types(Parameters& parameters, std::size_t layer, const CacheShape& shape) {
  return read_kinds(parameters, layer, shape, true);
}

KvTypes read_row_types(Parameters& parameters, std::size_t layer) {
  const CacheShape rows{std::vector<LayerShape>(parameters.layers(), {.kv_heads = 1, .head_dim = 64})};
  KvTypes types = read_kinds(parameters, layer, rows, false);
  if (types.k.format != types.v.format || types.k.scales != types.v.scales)
    parameters.refuse("type_v", "found another than of keys, expected the same: a row is key and value at once");
  return types;
}

}  // namespace kvs::inline caches
