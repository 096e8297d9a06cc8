// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/backend.h"

namespace kvs::inline kernels {

/// The operations of a device for a coder of rows: its memory, products in f32, and the coding of rows. On a CPU the
/// bits of a row depend on this row alone: not on the other rows, the threads or the instruction set.
class CodingOps {
 public:
  virtual ~CodingOps() = default;

  virtual DeviceMemory& memory() noexcept = 0;
  /// These are as in ForwardOps and AttentionOps. make_weight() is for linear_f32().
  virtual std::unique_ptr<Weight> make_weight(const WeightSource& source) = 0;
  virtual void linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                          bool accumulate) = 0;
  virtual void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                           BackendView<float, 4> v) = 0;
  virtual void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                           const StoredRows& held, std::size_t at) = 0;
  virtual void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) = 0;
};

/// The operations of a backend. It must not outlive the backend.
class BackendCoding final : public CodingOps {
 public:
  explicit BackendCoding(Backend& backend) : backend_(&backend) {}

  DeviceMemory& memory() noexcept override { return *backend_; }
  std::unique_ptr<Weight> make_weight(const WeightSource& source) override { return backend_->make_weight(source); }
  void linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                  bool accumulate) override {
    backend_->linear_f32(x, weight, out, accumulate);
  }
  void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                   BackendView<float, 4> v) override {
    backend_->split_heads(qkv, q, k, v);
  }
  void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count, const StoredRows& held,
                   std::size_t at) override {
    backend_->encode_rows(rows, first, count, held, at);
  }
  void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) override {
    backend_->decode_rows(held, first, out);
  }

 private:
  Backend* backend_;
};

}  // namespace kvs::inline kernels
