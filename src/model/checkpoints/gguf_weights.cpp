// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/scale_grid.h"

namespace kvs::inline model {

namespace {

/// Blocks of a GGUF type whose values are multiplied by one scale, or by one for each expert.
class ScaledBlocks final : public StoredMatrix {
 public:
  ScaledBlocks(const StoredTensor& weight, const StoredTensor& scale, ScaleGrid scales)
      : StoredMatrix(weight.shape, {&weight, &scale}), weight_(&weight), scales_(std::move(scales)) {}

  void read(std::size_t first, std::size_t count, std::span<float> out) const override {
    read_rows(*weight_, first, count, out);
    for (std::size_t row = 0; row < count; ++row) {
      float scale = 0;
      scales_.read(scales_.row_of(first + row), {&scale, 1});
      for (float& value : out.subspan(row * columns(), columns())) value *= scale;
    }
  }

 private:
  const StoredTensor* weight_;
  ScaleGrid scales_;
};

/// The scale of a router is the gain of the router's input (Gemma 4).
constexpr std::string_view kRouter = ".ffn_gate_inp";

class GgufWeights final : public QuantizedWeights {
 public:
  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    const StoredTensor* weight = archive.find(name);
    const std::string module = module_of(name);
    if (weight == nullptr || weight->type == nullptr || weight->shape.size() < 2 || module.empty()) return nullptr;
    if (module.ends_with(kRouter)) return nullptr;
    const StoredTensor* scale = archive.find(module + ".scale");
    if (scale == nullptr) return nullptr;
    ScaleGrid grid(archive, *scale, *weight, weight->shape, {}, {"F32"});
    return std::make_unique<ScaledBlocks>(*weight, *scale, std::move(grid));
  }
};

}  // namespace

std::shared_ptr<const QuantizedWeights> gguf_weights() { return std::make_shared<GgufWeights>(); }

}  // namespace kvs::inline model
