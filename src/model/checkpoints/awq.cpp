// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/column_matrix.h"

namespace kvs::inline model {

namespace {

class AwqWeights final : public QuantizedWeights {
 public:
  explicit AwqWeights(std::size_t group_size) : group_size_(group_size) {}

  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    return find_columns(archive, name,
                        {.layout = ColumnMatrix::Layout::kAcross,
                         .bits = 4,
                         .group_size = group_size_,
                         .zero_offset = 0,
                         .reordered = false});
  }

 private:
  std::size_t group_size_;
};

/// AutoAWQ's layout "gemm".
std::unique_ptr<const QuantizedWeights> read_awq(const JsonCursor& config, std::vector<std::string>& notes) {
  expect_one_of(config, "version", {"gemm", "GEMM"});
  expect_one_of(config, "backend", {"autoawq"});
  expect_number(config, "bits", {4}, 4);
  if (config.has("zero_point") && !config.at("zero_point").boolean())
    throw Error(ErrorCode::kUnsupported, config.at("zero_point").place(), "found weights without zero points");
  notes.push_back(config.place() + ": the weights (awq) are decoded");
  return std::make_unique<AwqWeights>(read_group_size(config));
}

}  // namespace

constinit const CheckpointFormat kAwq{"awq", read_awq};

}  // namespace kvs::inline model
