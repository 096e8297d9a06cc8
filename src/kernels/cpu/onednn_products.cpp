// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <dnnl.hpp>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/onednn_layout.h"
#include "kernels/cpu/products.h"

namespace kvs::cpu {
namespace {

using dnnl::memory;

constexpr std::size_t kMaxProducts = 4096;  // each has about 50 KiB of generated code
constexpr std::size_t kMaxLayouts = 1024;

/// Checks for free memory. oneDNN does not check its allocation of memory for generated code (2.6: a SIGSEGV).
void require_room() {
  constexpr std::size_t kRoom = std::size_t{16} << 20;
  void* const room = ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    throw Error(ErrorCode::kEnvironment, "oneDNN", "found no 16 MiB of address space for the code that it generates");
  ::munmap(room, kRoom);
}

/// Converts oneDNN's statuses to Error. Only this function does.
template <class Work>
auto checked(std::string_view what, Work&& work) {
  try {
    return work();
  } catch (const dnnl::error& error) {
    const bool memory_full = error.status == dnnl_out_of_memory;
    throw Error(memory_full ? ErrorCode::kEnvironment : ErrorCode::kInternal, "oneDNN",
                std::string(what) + " failed: " + error.what());
  }
}

const OnednnLayout& onednn(const PackedLayout& layout) { return static_cast<const OnednnLayout&>(layout); }

/// Handles of one thread. Their descriptors are plain bytes, because oneDNN takes shapes from the primitive. With a
/// padded descriptor, each change of address would rewrite the padding's zeros, to memory that other threads read.
struct Worker {
  Worker() : stream(onednn_engine()) {
    const memory::desc bytes({1}, memory::data_type::u8, memory::format_tag::a);
    for (memory& slot : slots) slot = memory(bytes, onednn_engine(), nullptr);
  }
  dnnl::stream stream;
  std::array<memory, 5> slots;
  AlignedBuffer scratch;
  AlignedBuffer x, out;  // for products with added rows
};
using Workers = std::vector<std::unique_ptr<Worker>>;

class OnednnProduct final : public Product {
 public:
  OnednnProduct(dnnl::matmul matmul, bool bias, const Workers& workers)
      : matmul_(std::move(matmul)), bias_(bias), workers_(&workers) {}

  bool run(std::size_t worker, const ProductArguments& arguments) const noexcept override {
    Worker& own = *(*workers_)[worker];
    const std::array<std::pair<int, void*>, 5> given{{{DNNL_ARG_SRC, const_cast<void*>(arguments.x)},
                                                      {DNNL_ARG_WEIGHTS, const_cast<void*>(arguments.packed)},
                                                      {DNNL_ARG_DST, arguments.out},
                                                      {DNNL_ARG_SCRATCHPAD, own.scratch.data()},
                                                      {DNNL_ARG_BIAS, const_cast<float*>(arguments.bias)}}};
    std::array<dnnl_exec_arg_t, 5> list{};
    const std::size_t count = bias_ ? 5 : 4;
    for (std::size_t i = 0; i < count; ++i) {
      if (dnnl_memory_set_data_handle(own.slots[i].get(), given[i].second) != dnnl_success) return false;
      list[i] = {given[i].first, own.slots[i].get()};
    }
    return dnnl_primitive_execute(matmul_.get(), own.stream.get(), static_cast<int>(count), list.data()) ==
           dnnl_success;
  }

 private:
  dnnl::matmul matmul_;
  bool bias_;
  const Workers* workers_;
};

/// Runs a product of few rows as a product of more rows. For up to four rows oneDNN uses AVX-512 where it uses AMX for
/// more. Their sums round differently, but a row's bits must not depend on the batch.
class PaddedProduct final : public Product {
 public:
  PaddedProduct(std::shared_ptr<const Product> product, const ProductShape& shape, std::size_t rows, std::size_t item,
                const Workers& workers)
      : product_(std::move(product)), shape_(shape), x_bytes_(shape.m * shape.k * item), workers_(&workers) {
    const std::size_t padded = rows * shape.k * item;
    for (const auto& worker : workers) {
      worker->x.reserve(padded);
      worker->out.reserve(rows * shape.n * sizeof(float));
    }
    padding_ = padded - x_bytes_;
  }

  bool run(std::size_t worker, const ProductArguments& arguments) const noexcept override {
    Worker& own = *(*workers_)[worker];
    const std::size_t out_bytes = shape_.m * shape_.n * sizeof(float);
    auto* const x = static_cast<std::byte*>(own.x.data());
    std::memcpy(x, arguments.x, x_bytes_);
    std::memset(x + x_bytes_, 0, padding_);
    if (shape_.accumulate) std::memcpy(own.out.data(), arguments.out, out_bytes);
    if (!product_->run(worker, {x, arguments.packed, arguments.bias, static_cast<float*>(own.out.data())}))
      return false;
    std::memcpy(arguments.out, own.out.data(), out_bytes);
    return true;
  }

 private:
  std::shared_ptr<const Product> product_;
  ProductShape shape_;
  std::size_t x_bytes_, padding_ = 0;
  const Workers* workers_;
};

class OnednnEngine final : public ProductEngine {
 public:
  OnednnEngine(DType type, std::size_t workers) : ProductEngine(type) {
    checked("starting", [&] {
      for (std::size_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>());
      return 0;
    });
  }

  std::shared_ptr<const PackedLayout> layout(std::size_t n, std::size_t k) override {
    if (layouts_.size() > kMaxLayouts) layouts_.clear();
    auto& found = layouts_[{n, k}];
    if (found == nullptr) {
      const OneThreadEach guard;
      require_room();
      found = checked("choosing a layout", [&] { return std::make_shared<OnednnLayout>(n, k, type()); });
    }
    return found;
  }

  void pack(const PackedLayout& layout, void* packed, std::size_t first, std::size_t count, const float* from,
            std::size_t column_stride, std::size_t row_stride) const override {
    checked("packing", [&] {
      const memory::desc source(matrix_dims(layout.k(), count), memory::data_type::f32,
                                matrix_dims(row_stride, column_stride));
      const memory::desc target =
          onednn(layout).desc().submemory_desc(matrix_dims(layout.k(), count), matrix_dims(0, first));
      memory in(source, onednn_engine(), const_cast<float*>(from)), out(target, onednn_engine(), packed);
      dnnl::stream stream(onednn_engine());
      dnnl::reorder(in, out).execute(stream, in, out);
      stream.wait();
      return 0;
    });
  }

  std::shared_ptr<const Product> product(const ProductShape& shape, const PackedLayout& layout) override {
    if (products_.size() > kMaxProducts) products_.clear();
    const auto found = products_.try_emplace(Key{shape, layout.n(), layout.k()});
    const auto entry = found.first;
    if (!found.second) return entry->second;
    const OneThreadEach guard;
    require_room();
    checked("compiling a product", [&] {
      const auto part = onednn(layout).leading_part(shape.n, shape.k);
      if (!part) return 0;
      const std::size_t rows = rows_like_many(shape, *part);
      const auto description = describe(of_rows(shape, rows), type(), *part);
      scratch_bytes_ = std::max(scratch_bytes_, description.scratchpad_desc().get_size());
      for (const auto& worker : workers_) worker->scratch.reserve(scratch_bytes_);
      entry->second = std::make_shared<OnednnProduct>(dnnl::matmul(description), shape.bias, workers_);
      if (rows > shape.m)
        entry->second = std::make_shared<PaddedProduct>(entry->second, shape, rows, item_size(type()), workers_);
      return 0;
    });
    return entry->second;
  }

 private:
  static ProductShape of_rows(ProductShape shape, std::size_t rows) {
    shape.m = rows;
    return shape;
  }

  /// Returns the smallest number of rows, from shape.m on, that oneDNN computes in the same way as many rows.
  std::size_t rows_like_many(const ProductShape& shape, const memory::desc& part) const {
    constexpr std::size_t kFew = 16;
    if (shape.m >= kFew) return shape.m;
    const auto how = [&](std::size_t rows) {
      return std::string(describe(of_rows(shape, rows), type(), part).impl_info_str());
    };
    const std::string many = how(kTypicalRows);
    for (std::size_t rows = shape.m; rows < kFew; ++rows)
      if (how(rows) == many) return rows;
    return shape.m;
  }

  using Key = std::tuple<ProductShape, std::size_t, std::size_t>;  // includes n and k of the layout
  std::size_t scratch_bytes_ = 0;
  Workers workers_;
  std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const PackedLayout>> layouts_;
  std::map<Key, std::shared_ptr<const Product>> products_;  // compiled once
};

}  // namespace

std::unique_ptr<ProductEngine> make_onednn_products(DType type, std::size_t workers) {
  return std::make_unique<OnednnEngine>(type, workers);
}

}  // namespace kvs::cpu
