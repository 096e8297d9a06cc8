// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_archive.h"
#include "model/parsed_config.h"
#include "model/tensor_shape.h"

namespace kvs::inline model {

/// The tensors of a model's sparse blocks by the names that its files have. A file may hold a tensor for each expert,
/// or one for all experts of a layer. Gate and up then share a tensor, the rows of the gate first, and down has its
/// own. Transformers 5 reads and writes both forms of every family. In GGUF all experts of a layer have one tensor,
/// gate and up maybe together; old files have a tensor for each expert.
class ExpertTable {
 public:
  ExpertTable(const TensorArchive& archive, ModelFormat format, const ParsedConfig& parsed);

  std::span<const TensorSpec> tensors() const noexcept { return tensors_; }

 private:
  std::vector<TensorSpec> tensors_;
  std::deque<std::string> names_;  // of `tensors_`, in addition to those of the family
};

}  // namespace kvs::inline model
