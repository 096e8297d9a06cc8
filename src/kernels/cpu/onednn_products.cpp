
#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/products.h"

namespace kvs::cpu {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr std::size_t kTypicalRows = 128;    // of the product that a layout is chosen for
constexpr std::size_t kMostProducts = 4096;  // about 50 KiB of generated code each
constexpr std::size_t kMostLayouts = 1024;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

memory::data_type dnnl_type(DType type) {
  return type == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

Dims dims(std::size_t a, std::size_t b) { return {static_cast<memory::dim>(a), static_cast<memory::dim>(b)}; }

/// oneDNN's statuses become the library's error, here and nowhere else.
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

dnnl::matmul::primitive_desc describe(const ProductShape& shape, DType type, const memory::desc& packed) {
  const auto plain = memory::format_tag::ab;
  const memory::desc x(dims(shape.m, shape.k), dnnl_type(type), plain);
  const memory::desc out(dims(shape.m, shape.n), memory::data_type::f32, plain);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    attributes.set_post_ops(after);
  }
  if (!shape.bias) return {dnnl::matmul::desc(x, packed, out), attributes, engine()};
  const memory::desc bias(dims(1, shape.n), memory::data_type::f32, plain);
  return {dnnl::matmul::desc(x, packed, bias, out), attributes, engine()};
}

memory::desc packed_desc(std::size_t n, std::size_t k, DType type) {
  const memory::desc any(dims(k, n), dnnl_type(type), memory::format_tag::any);
  return describe({kTypicalRows, n, k}, type, any).weights_desc();
}

/// Elements of one inner block along `axis`.
memory::dim block_extent(const memory::desc& desc, int axis) {
  const auto& blocking = desc.data.format_desc.blocking;
  memory::dim extent = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i)
    if (blocking.inner_idxs[i] == axis) extent *= blocking.inner_blks[i];
  return extent;
}

/// Whether `part`, a smaller matrix, lies in memory as the leading part of `whole`.
bool is_prefix(const memory::desc& part, const memory::desc& whole) {
  const auto &a = part.data.format_desc.blocking, &b = whole.data.format_desc.blocking;
  if (part.data.extra.flags != whole.data.extra.flags || a.inner_nblks != b.inner_nblks) return false;
  for (int i = 0; i < a.inner_nblks; ++i)
    if (a.inner_idxs[i] != b.inner_idxs[i] || a.inner_blks[i] != b.inner_blks[i]) return false;
  for (int axis = 0; axis < 2; ++axis)
    if (part.data.padded_dims[axis] > block_extent(part, axis) && a.strides[axis] != b.strides[axis]) return false;
  return true;
}

/// The first `k` rows and `n` columns of a packed matrix, if they lie in memory as a matrix of their own; with all rows
/// also `n` columns from any multiple of column_step on.
std::optional<memory::desc> leading_part(const memory::desc& whole, DType type, std::size_t n, std::size_t k,
                                         std::size_t column_step) {
  const auto all_n = static_cast<std::size_t>(whole.data.dims[1]), all_k = static_cast<std::size_t>(whole.data.dims[0]);
  if (n == all_n && k == all_k) return whole;
  if (k != all_k) {
    const memory::desc part = packed_desc(n, k, type);
    return is_prefix(part, whole) ? std::optional(part) : std::nullopt;
  }
  // A number of columns that leaves a block unfinished is possible at the right border only.
  const std::size_t first = n % column_step == 0 ? 0 : all_n - n;
  if (column_step == all_n || first % column_step != 0) return std::nullopt;
  memory::desc part = whole.submemory_desc(dims(k, n), dims(0, first));
  part.data.offset0 = 0;
  return part;
}

class OnednnLayout final : public PackedLayout {
 public:
  OnednnLayout(std::size_t n, std::size_t k, const memory::desc& desc) : PackedLayout(n, k), desc_(desc) {
    bytes_ = desc_.get_size();
    const auto& data = desc_.data;
    const auto step = static_cast<std::size_t>(block_extent(desc_, 1));
    const auto stride = static_cast<std::size_t>(data.format_desc.blocking.strides[1]);
    const auto padded_k = static_cast<std::size_t>(data.padded_dims[0]);
    const std::size_t item = memory::data_type_size(desc_.data_type());
    const bool columns_outermost = step * padded_k == stride && step < n;
    column_step_ = columns_outermost ? step : n;
    step_bytes_ = columns_outermost ? stride * item : bytes_;
  }
  const memory::desc& desc() const noexcept { return desc_; }

 private:
  memory::desc desc_;
};

const memory::desc& desc_of(const PackedLayout& layout) { return static_cast<const OnednnLayout&>(layout).desc(); }

/// One thread's handles. Their descriptors are plain bytes: oneDNN takes shapes from the primitive, and with a padded
/// descriptor each change of address would write the padding's zeros again, into memory that other threads read.
struct Worker {
  Worker() : stream(engine()) {
    const memory::desc bytes({1}, memory::data_type::u8, memory::format_tag::a);
    for (memory& slot : slots) slot = memory(bytes, engine(), nullptr);
  }
  dnnl::stream stream;
  std::array<memory, 5> slots;
  AlignedBuffer scratch;
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

class OnednnEngine final : public ProductEngine {
 public:
  OnednnEngine(DType type, std::size_t workers) : ProductEngine(type) {
    checked("starting", [&] {
      for (std::size_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>());
      return 0;
    });
  }

  std::shared_ptr<const PackedLayout> layout(std::size_t n, std::size_t k) override {
    if (layouts_.size() > kMostLayouts) layouts_.clear();
    auto& found = layouts_[{n, k}];
    if (found == nullptr) {
      const OneThreadEach guard;
      found =
          std::make_shared<OnednnLayout>(n, k, checked("choosing a layout", [&] { return packed_desc(n, k, type()); }));
    }
    return found;
  }

  void pack(const PackedLayout& layout, void* packed, std::size_t first, std::size_t count, const float* from,
            std::size_t column_stride, std::size_t row_stride) const override {
    checked("packing", [&] {
      const memory::desc source(dims(layout.k(), count), memory::data_type::f32, dims(row_stride, column_stride));
      const memory::desc target = desc_of(layout).submemory_desc(dims(layout.k(), count), dims(0, first));
      memory in(source, engine(), const_cast<float*>(from)), out(target, engine(), packed);
      dnnl::stream stream(engine());
      dnnl::reorder(in, out).execute(stream, in, out);
      stream.wait();
      return 0;
    });
  }

  std::shared_ptr<const Product> product(const ProductShape& shape, const PackedLayout& layout) override {
    if (products_.size() > kMostProducts) products_.clear();
    const auto [entry, fresh] = products_.try_emplace(Key{shape, layout.n(), layout.k()});
    if (!fresh) return entry->second;
    const OneThreadEach guard;
    checked("compiling a product", [&] {
      const auto part = leading_part(desc_of(layout), type(), shape.n, shape.k, layout.column_step());
      if (!part) return 0;
      const auto description = describe(shape, type(), *part);
      scratch_bytes_ = std::max(scratch_bytes_, description.scratchpad_desc().get_size());
      for (const auto& worker : workers_) worker->scratch.reserve(scratch_bytes_);
      entry->second = std::make_shared<OnednnProduct>(dnnl::matmul(description), shape.bias, workers_);
      return 0;
    });
    return entry->second;
  }

 private:
  using Key = std::tuple<ProductShape, std::size_t, std::size_t>;  // the layout's n and k
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
