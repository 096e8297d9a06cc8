// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/compressed_scheme.h"
#include "model/checkpoints/scaled_matrix.h"

namespace kvs::inline model {

namespace {

using Scheme = CompressedScheme;
using Shape = std::vector<std::uint64_t>;

/// Returns true if a pattern names the module's class.
bool names_class(const ModulePattern& pattern, const std::string& module) {
  const bool embedding = module.find("embed", module.rfind('.') + 1) != std::string::npos;
  return pattern.kind() == ModulePattern::Kind::kName && pattern.text() == (embedding ? "Embedding" : "Linear");
}

/// Returns true if the names differ by a prefix only.
bool is_same_module(const std::string& one, const std::string& other) {
  const std::string& longer = one.size() > other.size() ? one : other;
  const std::string& shorter = one.size() > other.size() ? other : one;
  return longer == shorter || (shorter.find('.') != std::string::npos && longer.ends_with("." + shorter));
}

/// Reads weight_shape, which must fit the packed tensor.
Shape read_shape(const TensorArchive& archive, const StoredTensor& packed, const StoredTensor& stored,
                 std::size_t bits) {
  expect_type(archive, stored, {"I64", "I32"});
  expect_shape(archive, stored, {2}, "rows and columns");
  Shape shape(2);
  const std::size_t size = stored.type_name == "I64" ? 8 : 4;
  for (std::size_t axis = 0; axis < 2; ++axis) std::memcpy(&shape[axis], stored.bytes.data() + axis * size, size);
  const auto packed_bits = checked_multiply(shape[1], bits);
  const bool fits = packed.shape.size() == 2 && packed.shape[0] == shape[0] && packed_bits &&
                    packed.shape[1] == *packed_bits / 32 + (*packed_bits % 32 == 0 ? 0 : 1);
  if (!fits)
    throw Error(ErrorCode::kInput, place_of(archive, stored),
                "found " + std::to_string(shape[0]) + " x " + std::to_string(shape[1]) + " values, expected those of " +
                    printable(packed.name, 120) + " with " + std::to_string(bits) + " bits each");
  return shape;
}

bool is_packed(Scheme::Codes codes) {
  return codes == Scheme::Codes::kPacked || codes == Scheme::Codes::kNvFp4 || codes == Scheme::Codes::kMxFp4;
}

std::string type_of(Scheme::Codes codes) {
  switch (codes) {
    case Scheme::Codes::kI8:
      return "I8";
    case Scheme::Codes::kPacked:
      return "I32";
    case Scheme::Codes::kNvFp4:
    case Scheme::Codes::kMxFp4:
      return "U8";
    default:
      return "F8_E4M3";
  }
}

DecodeCodes decoder_of(const Scheme& scheme) {
  switch (scheme.codes) {
    case Scheme::Codes::kI8:
      return decode_i8_codes;
    case Scheme::Codes::kPacked:
      return packed_decoder(scheme.bits);
    case Scheme::Codes::kNvFp4:
    case Scheme::Codes::kMxFp4:
      return decode_e2m1_codes;
    default:
      return decode_e4m3_codes;
  }
}

const std::vector<std::string>& scale_types(Scheme::Codes codes) {
  static const std::vector<std::string> nvfp4{"F8_E4M3"}, mx{"U8", "F8_E8M0"};
  if (codes == Scheme::Codes::kNvFp4) return nvfp4;
  return codes == Scheme::Codes::kMxFp4 || codes == Scheme::Codes::kMxFp8 ? mx : float_types();
}

/// One matrix, from its module's tensors.
class Reader {
 public:
  Reader(const TensorArchive& archive, const Scheme& scheme, const StoredTensor& values, std::string module)
      : archive_(archive), scheme_(scheme), values_(values), module_(std::move(module)), tensors_{&values} {}

  std::unique_ptr<StoredMatrix> read() {
    expect_type(archive_, values_, {type_of(scheme_.codes)});
    expect_matrix(archive_, values_);
    Shape shape = shape_of_values();
    if (scheme_.grouped && shape[1] % scheme_.block.columns != 0)
      throw Error(ErrorCode::kInput, place_of(archive_, values_),
                  "found " + std::to_string(shape[1]) + " columns, expected a multiple of the group_size " +
                      std::to_string(scheme_.block.columns));
    ScaleGrid scales(archive_, part("weight_scale"), values_, shape, scheme_.block, scale_types(scheme_.codes));
    if (scheme_.codes == Scheme::Codes::kNvFp4) scales.set_factor(archive_, part("weight_global_scale"), true);
    ScaledMatrix::Parts parts{.values = &values_, .decode = decoder_of(scheme_), .scales = std::move(scales)};
    read_zeros(parts);
    if (scheme_.reordered) parts.groups = read_groups(archive_, part("weight_g_idx"), shape[1], parts.scales.columns());
    return std::make_unique<ScaledMatrix>(std::move(shape), std::move(tensors_), std::move(parts));
  }

 private:
  const StoredTensor& part(const std::string& name) {
    return *tensors_.emplace_back(&part_of(archive_, values_, module_ + "." + name));
  }

  Shape shape_of_values() {
    if (scheme_.codes == Scheme::Codes::kPacked)
      return read_shape(archive_, values_, part("weight_shape"), scheme_.bits);
    return {values_.shape[0], values_.shape[1] * (is_packed(scheme_.codes) ? 2 : 1)};
  }

  /// Some versions store the zero points of symmetric weights, which are all 0.
  void read_zeros(ScaledMatrix::Parts& parts) {
    const StoredTensor* stored = archive_.find(module_ + ".weight_zero_point");
    if (!scheme_.symmetric) {
      parts.zeros.emplace(archive_, part("weight_zero_point"), parts.scales, scheme_.packed_zeros ? scheme_.bits : 0);
    } else if (stored != nullptr) {
      tensors_.push_back(stored);
      if (std::ranges::any_of(stored->bytes, [](std::byte byte) { return byte != std::byte{0}; }))
        throw Error(ErrorCode::kInput, place_of(archive_, *stored),
                    "found zero points other than 0, expected symmetric weights");
    }
  }

  const TensorArchive& archive_;
  const Scheme& scheme_;
  const StoredTensor& values_;
  std::string module_;
  std::vector<const StoredTensor*> tensors_;
};

class CompressedWeights final : public QuantizedWeights {
 public:
  CompressedWeights(std::vector<Scheme> schemes, std::vector<ModulePattern> ignored)
      : schemes_(std::move(schemes)), ignored_(std::move(ignored)) {}

  /// The tensors decide whether a module is quantised, the config how.
  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    const std::string module = module_of(name);
    if (module.empty()) return nullptr;
    const StoredTensor* packed = archive.find(module + ".weight_packed");
    const StoredTensor* values = packed != nullptr ? packed : archive.find(name);
    if (values == nullptr) return nullptr;
    const bool coded = packed != nullptr || values->type_name == "F8_E4M3" || values->type_name == "I8";
    if (!coded && archive.find(module + ".weight_scale") == nullptr) return nullptr;
    const Scheme& scheme = scheme_of(archive, *values, module);
    const bool other = (packed != nullptr) != is_packed(scheme.codes);
    if (other)
      throw Error(ErrorCode::kInput, place_of(archive, *values),
                  "found " + std::string(packed != nullptr ? "packed" : "unpacked") + " values, expected those of " +
                      scheme.format);
    return Reader(archive, scheme, *values, module).read();
  }

 private:
  const Scheme& scheme_of(const TensorArchive& archive, const StoredTensor& values, const std::string& module) const {
    if (const ModulePattern* pattern = find_match(ignored_, module); pattern != nullptr)
      throw Error(
          ErrorCode::kInput, place_of(archive, values),
          "found quantised values of a module that \"" + printable(pattern->text(), 120) + "\" of ignore names");
    // Names go before expressions, and those before classes.
    const Scheme* found = first_target([&](const ModulePattern& each) {
      return each.kind() == ModulePattern::Kind::kName && is_same_module(each.text(), module);
    });
    if (found == nullptr)
      found = first_target([&](const ModulePattern& each) {
        return each.kind() == ModulePattern::Kind::kRegex && each.matches(module);
      });
    if (found == nullptr) found = first_target([&](const ModulePattern& each) { return names_class(each, module); });
    if (found != nullptr) return *found;
    if (schemes_.size() == 1) return schemes_.front();
    throw Error(ErrorCode::kInput, place_of(archive, values),
                "found quantised values of a module that no group of config_groups targets");
  }

  /// Returns the scheme of the first matching target in order of texts; of equal targets the last one counts.
  template <class Matches>
  const Scheme* first_target(const Matches& matches) const {
    const Scheme* found = nullptr;
    const std::string* text = nullptr;
    for (const Scheme& scheme : schemes_) {
      for (const ModulePattern& target : scheme.targets) {
        if (!matches(target) || (text != nullptr && *text < target.text())) continue;
        found = &scheme;
        text = &target.text();
      }
    }
    return found;
  }

  std::vector<Scheme> schemes_;
  std::vector<ModulePattern> ignored_;
};

void refuse_other_parts(const JsonCursor& config) {
  if (config.has("sparsity_config") && config.at("sparsity_config").has("format"))
    expect_one_of(config.at("sparsity_config"), "format", {"dense"});
  if (config.has("transform_config")) expect_none(config.at("transform_config"), "config_groups");
}

std::string note_of(const JsonCursor& config, const std::vector<Scheme>& schemes) {
  std::vector<std::string> formats;
  for (const Scheme& scheme : schemes)
    if (std::ranges::find(formats, scheme.format) == formats.end()) formats.push_back(scheme.format);
  std::string text = config.place() + ": the weights (compressed-tensors";
  for (const std::string& format : formats) text += ", " + format;
  text += ") are decoded; activations are not quantised";
  return text + (config.has("kv_cache_scheme") ? ", nor is the cache as kv_cache_scheme says" : "");
}

std::unique_ptr<const QuantizedWeights> read_compressed(const JsonCursor& config, std::vector<std::string>& notes) {
  const JsonCursor groups = config.at("config_groups");
  refuse_other_parts(config);
  const std::string format = config.has("format") ? config.at("format").string() : "fakequant";
  std::vector<Scheme> schemes;
  for (const std::string& key : groups.keys()) {
    const JsonCursor group = groups.at(key);
    if (!group.value().is_object())
      throw Error(ErrorCode::kUnsupported, group.place(),
                  "found " + describe_json(group.value()) + ", supported are: groups that state their weights");
    if (group.has("weights")) schemes.push_back(read_compressed_scheme(group, format));
  }
  if (schemes.empty()) return nullptr;  // only the cache or activations are quantised
  notes.push_back(note_of(config, schemes));
  return std::make_unique<CompressedWeights>(std::move(schemes),
                                             read_patterns(config, "ignore", ModulePattern::of_compressed_tensors));
}

}  // namespace

constinit const CheckpointFormat kCompressedTensors{"compressed-tensors", read_compressed};

}  // namespace kvs::inline model
