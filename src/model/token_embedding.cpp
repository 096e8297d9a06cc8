// SPDX-License-Identifier: Apache-2.0
#include "model/token_embedding.h"

#include <algorithm>
#include <vector>

namespace kvs::inline model {

TokenEmbedding::TokenEmbedding(Backend& backend, const TensorRows& rows)
    : backend_(&backend),
      source_(rows),
      memory_(backend, {operand_bytes(backend, rows.rows(), rows.columns())}),
      table_{memory_.view().data(), rows.rows(), rows.columns()} {
  constexpr std::size_t kRows = 1024;  // loaded at a time
  std::vector<float> slab(std::min(table_.rows, kRows) * table_.columns);
  std::vector<std::uint16_t> narrow;
  for (std::size_t first = 0; first < table_.rows; first += kRows) {
    const std::span<float> values = std::span(slab).first(std::min(kRows, table_.rows - first) * table_.columns);
    source_.read(first, values.size() / table_.columns, values);
    if (backend.compute_type() == DType::kF32) {
      backend.upload(at(first), values.data(), values.size_bytes());
      continue;
    }
    narrow.resize(values.size());
    std::ranges::transform(values, narrow.begin(), f32_to_bf16);
    backend.upload(at(first), narrow.data(), narrow.size() * sizeof(std::uint16_t));
  }
}

void TokenEmbedding::leave_in_file() {
  memory_ = {};
  table_.data = nullptr;
}

void TokenEmbedding::gather(std::span<const std::int32_t> rows, float scale, const BackendView<float, 2>& out) const {
  if (table_.data != nullptr) return backend_->gather(table_, rows, scale, out);
  std::vector<float> values(rows.size() * table_.columns);
  for (std::size_t n = 0; n < rows.size(); ++n)
    source_.read(static_cast<std::size_t>(rows[n]), 1, std::span(values).subspan(n * table_.columns, table_.columns));
  const bool narrow = backend_->compute_type() == DType::kBF16;
  for (float& value : values) value = scale * (narrow ? bf16_to_f32(f32_to_bf16(value)) : value);
  backend_->upload(out.data(), values.data(), values.size() * sizeof(float));
}

void TokenEmbedding::read(std::size_t first, std::size_t count, std::span<float> out) const {
  if (backend_->compute_type() == DType::kF32) return backend_->download(out.data(), at(first), out.size_bytes());
  std::vector<std::uint16_t> narrow(count * table_.columns);
  backend_->download(narrow.data(), at(first), narrow.size() * sizeof(std::uint16_t));
  std::ranges::transform(narrow, out.begin(), bf16_to_f32);
}

std::byte* TokenEmbedding::at(std::size_t row) const {
  return memory_.view().data() + operand_bytes(*backend_, row, table_.columns);
}

}  // namespace kvs::inline model
