// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/scaled_matrix.h"

namespace kvs::inline model {

namespace {

constexpr std::string_view kEightBits = "F8_E4M3";

/// F8_E4M3 values of X with scales X_scale_inv, as DeepSeek, Qwen and others publish them: one scale for each block of
/// weight_block_size, or one for a matrix.
class Fp8Weights final : public QuantizedWeights {
 public:
  explicit Fp8Weights(BlockSize block) : block_(block) {}

  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    const StoredTensor* weight = archive.find(name);
    if (weight == nullptr) return nullptr;
    const std::string scales_name = name + "_scale_inv";
    const StoredTensor* scales = archive.find(scales_name);
    if (weight->type_name != kEightBits) {
      if (scales == nullptr) return nullptr;
      throw Error(ErrorCode::kInput, place_of(archive, *weight),
                  "found type " + weight->type_name + " with scales " + scales_name + ", expected F8_E4M3");
    }
    if (scales == nullptr)
      throw Error(ErrorCode::kInput, place_of(archive, *weight),
                  "found F8_E4M3 values, expected their scales " + scales_name);
    if (weight->shape.size() != 2 && weight->shape.size() != 3)
      throw Error(ErrorCode::kUnsupported, place_of(archive, *weight),
                  "found F8_E4M3 values of " + std::to_string(weight->shape.size()) +
                      " dimensions, supported are: 2, and 3 for experts");
    static const std::vector<std::string> types{"F32", "F16", "BF16", "F64", "F8_E8M0", "U8"};
    ScaleGrid grid(archive, *scales, *weight, weight->shape, block_, types);
    return std::make_unique<ScaledMatrix>(
        weight->shape, std::vector<const StoredTensor*>{weight, scales},
        ScaledMatrix::Parts{.values = weight, .decode = decode_e4m3_codes, .scales = std::move(grid)});
  }

 private:
  BlockSize block_;
};

std::unique_ptr<const QuantizedWeights> read_fp8(const JsonCursor& config, std::vector<std::string>& notes) {
  expect_one_of(config, "fmt", {"e4m3", "float8_e4m3fn"});
  expect_one_of(config, "scale_fmt", {"float", "ue8m0"});
  expect_one_of(config, "activation_scheme", {"dynamic", "static"});
  notes.push_back(config.place() + ": the weights (fp8) are decoded; activations are not quantised");
  if (!config.has("weight_block_size")) return std::make_unique<Fp8Weights>(BlockSize{});
  return std::make_unique<Fp8Weights>(read_block_size(config.at("weight_block_size")));
}

}  // namespace

constinit const CheckpointFormat kFp8{"fp8", read_fp8};

}  // namespace kvs::inline model
