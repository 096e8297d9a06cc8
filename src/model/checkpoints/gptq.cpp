// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/column_matrix.h"

namespace kvs::inline model {

namespace {

class GptqWeights final : public QuantizedWeights {
 public:
  explicit GptqWeights(ColumnScheme scheme) : scheme_(scheme) {}

  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    return find_columns(archive, name, scheme_);
  }

 private:
  ColumnScheme scheme_;
};

/// AutoGPTQ's and GPTQModel's layout. The first version of it stores zero points minus 1.
std::unique_ptr<const QuantizedWeights> read_gptq(const JsonCursor& config, std::vector<std::string>& notes) {
  const std::string_view key = config.has("checkpoint_format") ? "checkpoint_format" : "format";
  expect_one_of(config, key, {"gptq", "gptq_v2"});
  expect_one_of(config, "pack_dtype", {"int32"});
  for (const std::string_view other : {"dynamic", "is_marlin_format", "adapter", "rotation"})
    expect_none(config, other);
  const bool second = config.has(key) && config.at(key).string() == "gptq_v2";
  const std::size_t bits = expect_number(config, "bits", {2, 3, 4, 8}, 4);
  notes.push_back(config.place() + ": the weights (gptq, " + std::to_string(bits) + " bits) are decoded");
  return std::make_unique<GptqWeights>(
      ColumnScheme{.layout = ColumnMatrix::Layout::kDown,
                   .bits = bits,
                   .group_size = read_group_size(config),
                   .zero_offset = second ? 0 : 1,
                   .reordered = config.has("desc_act") && config.at("desc_act").boolean()});
}

}  // namespace

constinit const CheckpointFormat kGptq{"gptq", read_gptq};

}  // namespace kvs::inline model
