// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace kvs::inline calibrate {

/// A member of sums over documents.
struct SavedSum {
  std::vector<double>* values;
  bool grows = false;  // its size depends on the number of documents
};

/// Sets sums to the state of a checkpoint. @throws Error kInput for the state of other sums
void restore_sums(std::span<const std::vector<double>> state, std::span<const SavedSum> sums);

}  // namespace kvs::inline calibrate
