// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/scaled_matrix.h"

namespace kvs::inline model {

namespace {

constexpr std::size_t kBlock = 32;

/// The matrices of all experts of gpt-oss: X_blocks holds two E2M1 codes in a byte, the even column in its low half,
/// and X_scales an E8M0 scale for each 32 columns. A row is an output channel, also where the plain tensor X is
/// transposed. Source: convert_moe_packed_tensors() in Transformers' integrations/mxfp4.py.
class Mxfp4Weights final : public QuantizedWeights {
 public:
  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    const std::string scales_name = name + "_scales";
    const StoredTensor *const blocks = archive.find(name + "_blocks"), *const scales = archive.find(scales_name);
    if (blocks == nullptr && scales == nullptr) return nullptr;
    if (blocks == nullptr)
      throw Error(ErrorCode::kInput, place_of(archive, *scales), "found scales without their " + name + "_blocks");
    expect_type(archive, *blocks, {"U8"});
    const std::vector<std::uint64_t> shape = shape_of(archive, *blocks);
    ScaleGrid grid(archive, part_of(archive, *blocks, scales_name), *blocks, shape, {.rows = 1, .columns = kBlock},
                   {"U8", "F8_E8M0"});
    return std::make_unique<ScaledMatrix>(
        shape, std::vector<const StoredTensor*>{blocks, scales},
        ScaledMatrix::Parts{
            .values = blocks, .decode = decode_e2m1_codes, .scales = std::move(grid), .by_output = true});
  }

 private:
  /// Returns the shape of the values: [expert, row, column].
  static std::vector<std::uint64_t> shape_of(const TensorArchive& archive, const StoredTensor& blocks) {
    std::vector<std::uint64_t> shape = blocks.shape;
    if (shape.size() == 4 && shape[3] == kBlock / 2 && shape[2] <= kMaxBlockExtent) {
      shape[2] *= shape[3];
      shape.pop_back();
    }
    if (shape.size() != 3 || shape[2] > kMaxBlockExtent)
      throw Error(ErrorCode::kInput, place_of(archive, blocks),
                  "found shape " + shape_text(blocks.shape) + ", expected [expert, row, columns / 32, 16]");
    shape[2] *= 2;
    return shape;
  }
};

std::unique_ptr<const QuantizedWeights> read_mxfp4(const JsonCursor& config, std::vector<std::string>& notes) {
  notes.push_back(config.place() + ": the weights (mxfp4) are decoded; activations are not quantised");
  return std::make_unique<Mxfp4Weights>();
}

}  // namespace

constinit const CheckpointFormat kMxfp4{"mxfp4", read_mxfp4};

}  // namespace kvs::inline model
