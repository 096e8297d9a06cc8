#include "kernels/cpu/products.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "kernels/cpu/aligned.h"

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

}  // namespace

struct PackedLayout::Desc {
  memory::desc value;
};

PackedLayout::PackedLayout(std::size_t n, std::size_t k, std::unique_ptr<Desc> desc)
    : n_(n), k_(k), desc_(std::move(desc)) {
  bytes_ = desc_->value.get_size();
  const auto& data = desc_->value.data;
  const auto step = static_cast<std::size_t>(block_extent(desc_->value, 1));
  const auto stride = static_cast<std::size_t>(data.format_desc.blocking.strides[1]);
  const auto padded_k = static_cast<std::size_t>(data.padded_dims[0]);
  const std::size_t item = memory::data_type_size(desc_->value.data_type());
  const bool columns_outermost = step * padded_k == stride && step < n;
  column_step_ = columns_outermost ? step : n;
  step_bytes_ = columns_outermost ? stride * item : bytes_;
}
PackedLayout::~PackedLayout() = default;

struct Product::Primitive {
  dnnl::matmul value;
  bool bias;
};
Product::Product(std::unique_ptr<Primitive> primitive) : primitive_(std::move(primitive)) {}
Product::~Product() = default;

/// One thread's handles. Their descriptors are plain bytes: oneDNN takes shapes from the primitive, and with a padded
/// descriptor each change of address would write the padding's zeros again, into memory that other threads read.
struct ProductEngine::Worker {
  Worker() : stream(engine()) {
    const memory::desc bytes({1}, memory::data_type::u8, memory::format_tag::a);
    for (memory& slot : slots) slot = memory(bytes, engine(), nullptr);
  }
  dnnl::stream stream;
  std::array<memory, 5> slots;
  AlignedBuffer scratch;
};

ProductEngine::ProductEngine(DType type, std::size_t workers) : type_(type) {
  checked("starting", [&] {
    for (std::size_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>());
    return 0;
  });
}
ProductEngine::~ProductEngine() = default;

std::shared_ptr<const PackedLayout> ProductEngine::layout(std::size_t n, std::size_t k) {
  if (layouts_.size() > kMostLayouts) layouts_.clear();
  auto& found = layouts_[{n, k}];
  if (found == nullptr) {
    const OneThreadEach guard;
    auto desc = std::make_unique<PackedLayout::Desc>(
        checked("choosing a layout", [&] { return PackedLayout::Desc{packed_desc(n, k, type_)}; }));
    found = std::shared_ptr<const PackedLayout>(new PackedLayout(n, k, std::move(desc)));
  }
  return found;
}

void ProductEngine::pack(const PackedLayout& layout, void* packed, std::size_t first, std::size_t count,
                         const float* from, std::size_t column_stride, std::size_t row_stride) const {
  checked("packing", [&] {
    const memory::desc source(dims(layout.k_, count), memory::data_type::f32, dims(row_stride, column_stride));
    const memory::desc target = layout.desc_->value.submemory_desc(dims(layout.k_, count), dims(0, first));
    memory in(source, engine(), const_cast<float*>(from)), out(target, engine(), packed);
    dnnl::stream stream(engine());
    dnnl::reorder(in, out).execute(stream, in, out);
    stream.wait();
    return 0;
  });
}

std::shared_ptr<const Product> ProductEngine::product(const ProductShape& shape, const PackedLayout& layout) {
  if (products_.size() > kMostProducts) products_.clear();
  const auto [entry, fresh] = products_.try_emplace(Key{shape, layout.n_, layout.k_});
  if (!fresh) return entry->second;
  const OneThreadEach guard;
  checked("compiling a product", [&] {
    const auto part = leading_part(layout.desc_->value, type_, shape.n, shape.k, layout.column_step_);
    if (!part) return 0;
    const auto description = describe(shape, type_, *part);
    scratch_bytes_ = std::max(scratch_bytes_, description.scratchpad_desc().get_size());
    for (const auto& worker : workers_) worker->scratch.reserve(scratch_bytes_);
    auto primitive = std::make_unique<Product::Primitive>(Product::Primitive{dnnl::matmul(description), shape.bias});
    entry->second = std::shared_ptr<const Product>(new Product(std::move(primitive)));
    return 0;
  });
  return entry->second;
}

bool ProductEngine::run(const Product& product, std::size_t worker, const ProductArguments& arguments) const noexcept {
  Worker& own = *workers_[worker];
  const std::array<std::pair<int, void*>, 5> given{{{DNNL_ARG_SRC, const_cast<void*>(arguments.x)},
                                                    {DNNL_ARG_WEIGHTS, const_cast<void*>(arguments.packed)},
                                                    {DNNL_ARG_DST, arguments.out},
                                                    {DNNL_ARG_SCRATCHPAD, own.scratch.data()},
                                                    {DNNL_ARG_BIAS, const_cast<float*>(arguments.bias)}}};
  std::array<dnnl_exec_arg_t, 5> list{};
  const std::size_t count = product.primitive_->bias ? 5 : 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (dnnl_memory_set_data_handle(own.slots[i].get(), given[i].second) != dnnl_success) return false;
    list[i] = {given[i].first, own.slots[i].get()};
  }
  return dnnl_primitive_execute(product.primitive_->value.get(), own.stream.get(), static_cast<int>(count),
                                list.data()) == dnnl_success;
}

OneThreadEach::OneThreadEach() noexcept : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThreadEach::~OneThreadEach() { omp_set_num_threads(before_); }

}  // namespace kvs::cpu
