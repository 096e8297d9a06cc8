// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>

#include "core/error.h"
#include "core/nearest.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/module_patterns.h"
#include "model/checkpoints/scaled_matrix.h"

namespace kvs::inline model {

namespace {

constexpr std::string_view kMixed = "MIXED_PRECISION";
constexpr std::size_t kNvFp4Group = 16;

const std::vector<std::string>& algorithms() {
  static const std::vector<std::string> names{"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "NVFP4", "W4A16_NVFP4",
                                              "W4A8_NVFP4_FP8"};
  return names;
}

/// Values of F8_E4M3 with one scale, or one for each row; or pairs of E2M1 in U8 with a scale of F8_E4M3 for 16 columns
/// and one factor. The type of a module's weight says which.
class ModelOptWeights final : public QuantizedWeights {
 public:
  /// @param refused  modules with an algorithm that is not supported: its name
  ModelOptWeights(std::vector<ModulePattern> excluded, std::map<std::string, std::string> refused)
      : excluded_(std::move(excluded)), refused_(std::move(refused)) {}

  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    const std::string module = module_of(name);
    const StoredTensor* weight = module.empty() ? nullptr : archive.find(name);
    if (weight == nullptr) return nullptr;
    const bool eight = weight->type_name == "F8_E4M3", four = weight->type_name == "U8";
    if (!eight && !four && archive.find(module + ".weight_scale") == nullptr) return nullptr;
    expect_type(archive, *weight, {"F8_E4M3", "U8"});
    check_module(archive, *weight, module);
    expect_matrix(archive, *weight);
    const StoredTensor& scales = part_of(archive, *weight, module + ".weight_scale");
    return eight ? eight_bits(archive, *weight, scales) : four_bits(archive, *weight, scales, module);
  }

 private:
  void check_module(const TensorArchive& archive, const StoredTensor& weight, const std::string& module) const {
    if (const ModulePattern* pattern = find_match(excluded_, module); pattern != nullptr)
      throw Error(ErrorCode::kInput, place_of(archive, weight),
                  "found quantised values of a module that \"" + printable(pattern->text(), 120) + "\" excludes");
    if (const auto refused = refused_.find(module); refused != refused_.end())
      throw Error(ErrorCode::kUnsupported, place_of(archive, weight),
                  "found quant_algo " + printable(refused->second, 80) + ", supported are: " + listed(algorithms()));
    if (archive.find(module + ".pre_quant_scale") != nullptr)
      throw Error(ErrorCode::kUnsupported, place_of(archive, weight),
                  "found a pre_quant_scale of this module, which multiplies activations");
  }

  static std::unique_ptr<StoredMatrix> eight_bits(const TensorArchive& archive, const StoredTensor& weight,
                                                  const StoredTensor& scales) {
    const bool one = std::ranges::all_of(scales.shape, [](std::uint64_t extent) { return extent == 1; });
    ScaleGrid grid(archive, scales, weight, weight.shape, one ? BlockSize{} : BlockSize{1, 0}, float_types());
    return std::make_unique<ScaledMatrix>(
        weight.shape, std::vector<const StoredTensor*>{&weight, &scales},
        ScaledMatrix::Parts{.values = &weight, .decode = decode_e4m3_codes, .scales = std::move(grid)});
  }

  static std::unique_ptr<StoredMatrix> four_bits(const TensorArchive& archive, const StoredTensor& weight,
                                                 const StoredTensor& scales, const std::string& module) {
    const std::vector<std::uint64_t> shape{weight.shape[0], weight.shape[1] * 2};
    const StoredTensor& factor = part_of(archive, weight, module + ".weight_scale_2");
    ScaleGrid grid(archive, scales, weight, shape, {1, kNvFp4Group}, {"F8_E4M3"});
    grid.set_factor(archive, factor, false);
    return std::make_unique<ScaledMatrix>(
        shape, std::vector<const StoredTensor*>{&weight, &scales, &factor},
        ScaledMatrix::Parts{.values = &weight, .decode = decode_e2m1_codes, .scales = std::move(grid)});
  }

  std::vector<ModulePattern> excluded_;
  std::map<std::string, std::string> refused_;
};

/// Returns quant_algo in upper case, which some versions write in lower case.
/// @param object  of the model, or of one module
std::string algorithm_of(const JsonCursor& object) {
  std::string name = object.at("quant_algo").string();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name.find("NVFP4") != std::string::npos) expect_number(object, "group_size", {kNvFp4Group}, kNvFp4Group);
  return name;
}

bool is_supported(const std::string& algorithm) {
  return std::ranges::find(algorithms(), algorithm) != algorithms().end();
}

/// Returns the modules of quantized_layers that cannot be read. The list has modules of parts that no model here reads.
std::map<std::string, std::string> refused_layers(const JsonCursor& config) {
  std::map<std::string, std::string> refused;
  if (!config.has("quantized_layers")) return refused;
  const JsonCursor layers = config.at("quantized_layers");
  for (const std::string& module : layers.keys()) {
    const std::string algorithm = algorithm_of(layers.at(module));
    if (!is_supported(algorithm)) refused[module] = algorithm;
  }
  return refused;
}

/// Reads quantization_config, or the object `quantization` of hf_quant_config.json.
std::unique_ptr<const QuantizedWeights> read_modelopt(const JsonCursor& config, std::vector<std::string>& notes) {
  const JsonCursor own = config.has("quantization") ? config.at("quantization") : config;
  const bool cache = own.has("kv_cache_quant_algo") || own.has("kv_cache_scheme");
  if (cache && !own.has("quant_algo")) {
    notes.push_back(own.place() + ": the weights (modelopt) have 16 bits; the cache is not quantised");
    return nullptr;
  }
  const std::string algorithm = algorithm_of(own);
  if (algorithm != kMixed && !is_supported(algorithm))
    throw Error(ErrorCode::kUnsupported, own.at("quant_algo").place(),
                "found " + describe_json(own.at("quant_algo").value()) + ", supported are: " + listed(algorithms()) +
                    ", " + std::string(kMixed));
  notes.push_back(own.place() + ": the weights (modelopt, " + algorithm +
                  ") are decoded; activations are not quantised" + (cache ? ", nor is the cache" : ""));
  std::vector<ModulePattern> excluded = read_patterns(own, "exclude_modules", ModulePattern::with_wildcards);
  std::vector<ModulePattern> ignored = read_patterns(own, "ignore", ModulePattern::with_wildcards);
  std::ranges::move(ignored, std::back_inserter(excluded));
  return std::make_unique<ModelOptWeights>(std::move(excluded), refused_layers(own));
}

}  // namespace

constinit const CheckpointFormat kModelOpt{"modelopt", read_modelopt};

}  // namespace kvs::inline model
