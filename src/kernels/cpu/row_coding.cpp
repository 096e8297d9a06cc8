// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/coded_rows.h"
#include "kernels/cpu/cpu_backend.h"

namespace kvs::inline kernels {

void CpuBackend::encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                             const StoredRows& held, std::size_t at) {
  cpu::encode_rows(rows, first, count, held, at, scratch_);
}

void CpuBackend::decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) {
  cpu::decode_rows(held, first, out, scratch_);
}

}  // namespace kvs::inline kernels
