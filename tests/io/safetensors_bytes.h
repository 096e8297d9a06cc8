// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/safetensors_writer.h"
#include "io/tensor_archive.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {

/// A tensor in memory, f32.
struct NamedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

/// The bytes of a safetensors file.
inline std::string safetensors_bytes(std::span<const NamedTensor> tensors, const SafetensorsMetadata& metadata = {}) {
  std::vector<OutputTensor> held;
  for (const NamedTensor& tensor : tensors) held.push_back(held_tensor(tensor.name, tensor.shape, tensor.values));
  const TemporaryDirectory directory;
  const auto file = directory.write("f", "");
  write_safetensors(file, held, metadata);
  return read_all(file);
}

/// All values of a tensor, as f32.
inline std::vector<float> values_of(const StoredTensor& tensor) {
  std::vector<float> values(tensor.rows() * tensor.columns());
  read_rows(tensor, 0, tensor.rows(), values);
  return values;
}

}  // namespace kvs::test
