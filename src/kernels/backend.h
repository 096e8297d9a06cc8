// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/attention_ops.h"
#include "kernels/device_memory.h"
#include "kernels/element_ops.h"
#include "kernels/forward_ops.h"
#include "kernels/recurrent_ops.h"
#include "kernels/spectral_ops.h"

namespace kvs::inline kernels {

/// All operations on one device and in one compute type, by role. Code that needs a single role takes the role's
/// interface. Not thread-safe: use one Backend per controlling thread. Each operation is parallel inside.
class Backend : public DeviceMemory,
                public ForwardOps,
                public ElementOps,
                public AttentionOps,
                public RecurrentOps,
                public SpectrumOps {
 public:
  /// Returns "cpu" or "cuda".
  virtual std::string_view device() const noexcept = 0;
  /// Returns kF32 or kBF16, the type of Operand elements and packed weights. Sums and the residual stream are f32.
  virtual DType compute_type() const noexcept = 0;

  /// Sets the receiver of one-line notes on how operations run, such as a library that failed and was replaced. There
  /// is no receiver by default. `sink` is called within an operation.
  void on_note(std::function<void(const std::string&)> sink) { note_sink_ = std::move(sink); }

  /// Returns the number of host threads that may work next to the operations, at least one. The default is for
  /// operations that run on the host too: a quarter of its processors.
  virtual std::size_t spare_threads() const;

 protected:
  void note(const std::string& line) const {
    if (note_sink_) note_sink_(line);
  }

 private:
  std::function<void(const std::string&)> note_sink_;
};

/// @param device   "cpu", "cuda" or "auto" (cuda if present, else cpu)
/// @param threads  0: all processors
/// @throws Error kUsage for an unknown name; kEnvironment if the device cannot be used.
std::unique_ptr<Backend> make_backend(std::string_view device, DType compute_type, int threads = 0);

/// Returns the bytes of an operand with this shape in the backend's compute type.
inline std::size_t operand_bytes(const Backend& backend, std::size_t rows, std::size_t columns) {
  return rows * columns * item_size(backend.compute_type());
}

/// An operand that owns its memory.
class OperandBuffer {
 public:
  OperandBuffer(Backend& backend, std::size_t rows, std::size_t columns)
      : memory_(backend, {operand_bytes(backend, rows, columns)}), operand_{memory_.view().data(), rows, columns} {}
  const Operand& get() const noexcept { return operand_; }

 private:
  BackendTensor<std::byte, 1> memory_;
  Operand operand_;
};

/// Returns a copy of an operand in host memory, widened to f32.
std::vector<float> download(Backend& backend, const Operand& operand);

/// Returns rows [first, first + count) of an operand.
inline Operand operand_rows(const Backend& backend, const Operand& matrix, std::size_t first, std::size_t count) {
  auto* const data = static_cast<std::byte*>(matrix.data) + operand_bytes(backend, first, matrix.columns);
  return {data, count, matrix.columns};
}

}  // namespace kvs::inline kernels
