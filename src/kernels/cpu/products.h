#pragma once

#include <compare>
#include <cstddef>
#include <memory>

#include "core/dtype.h"

namespace kvs::cpu {

/// How a right-hand matrix B [k, n] lies in memory for the engine's products: blocks of columns outermost.
class PackedLayout {
 public:
  virtual ~PackedLayout() = default;
  std::size_t n() const noexcept { return n_; }
  std::size_t k() const noexcept { return k_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Columns that may be cut off or started at: B's columns [j · column_step, …) begin at j · step_bytes() and are laid
  /// out as a matrix of their own. Equal to n() if the layout cannot be cut.
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

/// Where one product reads and writes. x is in the engine's type, bias and out are f32.
struct ProductArguments {
  const void* x = nullptr;
  const void* packed = nullptr;
  const float* bias = nullptr;
  float* out = nullptr;
};

/// out[m, n] = x[m, k] · B (+ bias) or, accumulating, out += …; one thread, all of them row-major and dense but B.
class Product {
 public:
  virtual ~Product() = default;
  /// Runs on the calling thread, whose number `worker` no other thread may use at the time.
  /// @return false if the library behind it refused.
  virtual bool run(std::size_t worker, const ProductArguments& arguments) const noexcept = 0;
};

/// Matrix products for use *inside* parallel regions: every product runs on the calling thread alone, so that tiles can
/// be scheduled as tasks and a row's result depends neither on the number of threads nor on the other rows.
class ProductEngine {
 public:
  virtual ~ProductEngine() = default;

  /// kF32 or kBF16: of x and of packed matrices.
  DType type() const noexcept { return type_; }

  /// The layout for B [k, n]. Not thread-safe.
  virtual std::shared_ptr<const PackedLayout> layout(std::size_t n, std::size_t k) = 0;
  /// Packs columns [first, first + count) of B from f32: element (c, i) of column first + c is at
  /// from[c · column_stride + i · row_stride]. first must be a multiple of column_step(). Thread-safe for distinct
  /// destinations. `packed` must have been zeroed once, since padding is not written.
  virtual void pack(const PackedLayout& layout, void* packed, std::size_t first, std::size_t count, const float* from,
                    std::size_t column_stride, std::size_t row_stride) const = 0;

  /// The product with B = the leading [shape.k, shape.n] part of a matrix packed as `layout`; shape.n may also be the
  /// width of any run of columns that begins at a multiple of column_step(). Null if this part does not lie in memory
  /// as a matrix of its own. Not thread-safe; products must not outlive the engine.
  virtual std::shared_ptr<const Product> product(const ProductShape& shape, const PackedLayout& layout) = 0;

 protected:
  explicit ProductEngine(DType type) : type_(type) {}

 private:
  DType type_;
};

/// oneDNN where the processor has the products that it packs matrices for: AVX-512 for f32, AVX-512 BF16 or AMX for
/// bf16. Elsewhere panels (simd/panel_product.cpp), where oneDNN has no bf16, and in f32 a row's bits vary with the
/// batch.
/// @param workers  threads that may run products at a time
std::unique_ptr<ProductEngine> make_product_engine(DType type, std::size_t workers);
std::unique_ptr<ProductEngine> make_onednn_products(DType type, std::size_t workers);
std::unique_ptr<ProductEngine> make_panel_products(DType type, std::size_t workers);

/// While it lives, OpenMP regions of the calling thread without a num_threads clause have one thread: what oneDNN must
/// see both when a Product is compiled and when it runs.
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
