// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <memory>

#include "core/dtype.h"

namespace kvs::cpu {

/// The memory layout of a right-hand matrix B [k, n] for the engine's products, with blocks of columns outermost.
class PackedLayout {
 public:
  virtual ~PackedLayout() = default;
  std::size_t n() const noexcept { return n_; }
  std::size_t k() const noexcept { return k_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Number of columns at which B may be cut: columns [j · column_step, …) begin at j · step_bytes() and are laid out
  /// as a separate matrix. Equal to n() if the layout cannot be cut.
  std::size_t column_step() const noexcept { return column_step_; }
  std::size_t step_bytes() const noexcept { return step_bytes_; }

 protected:
  PackedLayout(std::size_t n, std::size_t k) : n_(n), k_(k) {}
  std::size_t n_, k_, bytes_ = 0, column_step_ = 0, step_bytes_ = 0;
};

struct ProductShape {
  std::size_t m = 0, n = 0, k = 0;
  bool accumulate = false, bias = false;
  auto operator<=>(const ProductShape&) const = default;
};

/// Memory that one product reads and writes. x is in the engine's type; bias and out are f32.
struct ProductArguments {
  const void* x = nullptr;
  const void* packed = nullptr;
  const float* bias = nullptr;
  float* out = nullptr;
};

/// out[m, n] = x[m, k] · B (+ bias), or out += …. Uses one thread. All matrices except B are row-major and dense.
class Product {
 public:
  virtual ~Product() = default;
  /// Runs on the calling thread. No other thread may use the number `worker` at the same time. @return false if the
  /// library refused.
  virtual bool run(std::size_t worker, const ProductArguments& arguments) const noexcept = 0;
};

/// Matrix products for use *inside* parallel regions. Every product runs only on the calling thread, so tiles can be
/// tasks, and a row's result depends neither on the number of threads nor on the other rows.
class ProductEngine {
 public:
  virtual ~ProductEngine() = default;

  /// Type of x and of packed matrices: kF32 or kBF16.
  DType type() const noexcept { return type_; }

  /// Returns the layout for B [k, n]. Not thread-safe.
  virtual std::shared_ptr<const PackedLayout> layout(std::size_t n, std::size_t k) = 0;
  /// Packs columns [first, first + count) of B from f32: element (c, i) of column first + c is at from[c ·
  /// column_stride + i · row_stride]. `first` must be a multiple of column_step(). Thread-safe for different
  /// destinations. `packed` must have been zeroed once, because padding is not written.
  virtual void pack(const PackedLayout& layout, void* packed, std::size_t first, std::size_t count, const float* from,
                    std::size_t column_stride, std::size_t row_stride) const = 0;

  /// Returns the product with B = the leading [shape.k, shape.n] part of a matrix packed with `layout`. shape.n may
  /// also be the width of any run of columns that begins at a multiple of column_step(). Returns null if this part is
  /// not laid out as a separate matrix. Not thread-safe. Products must not outlive the engine.
  virtual std::shared_ptr<const Product> product(const ProductShape& shape, const PackedLayout& layout) = 0;

 protected:
  explicit ProductEngine(DType type) : type_(type) {}

 private:
  DType type_;
};

/// Makes a oneDNN engine if the processor has the instructions for which oneDNN packs matrices: AVX-512 for f32,
/// AVX-512 BF16 or AMX for bf16. Otherwise makes a panel engine (simd/panel_product.cpp), because there oneDNN has no
/// bf16, and in f32 its bits of a row vary with the batch.
/// @param workers  number of threads that may run products at once
std::unique_ptr<ProductEngine> make_product_engine(DType type, std::size_t workers);
std::unique_ptr<ProductEngine> make_onednn_products(DType type, std::size_t workers);
std::unique_ptr<ProductEngine> make_panel_products(DType type, std::size_t workers);

/// While this object lives, OpenMP regions of the calling thread without a num_threads clause have one thread. oneDNN
/// must see this both when it compiles a Product and when it runs one.
class OneThreadEach {
 public:
  OneThreadEach() noexcept;
  ~OneThreadEach();
  OneThreadEach(const OneThreadEach&) = delete;
  OneThreadEach& operator=(const OneThreadEach&) = delete;

 private:
  int before_;
};

}  // namespace kvs::cpu
