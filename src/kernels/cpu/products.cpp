// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/products.h"

#include "kernels/instruction_set.h"

namespace kvs::cpu {

std::unique_ptr<ProductEngine> make_product_engine(DType type, std::size_t workers) {
  const auto needed = type == DType::kBF16 ? InstructionSet::kAvx512Bf16 : InstructionSet::kAvx512;
  return instruction_set() >= needed ? make_onednn_products(type, workers) : make_panel_products(type, workers);
}

}  // namespace kvs::cpu
