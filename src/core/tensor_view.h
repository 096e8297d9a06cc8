// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "core/error.h"

namespace kvs::inline core {

/// Where the elements live. kBackend memory may be dereferenced only by the Backend that allocated it.
enum class Memory { kHost, kBackend };

/// A non-owning, row-major, packed view with the outermost axis first. Subscripting backend memory does not compile.
template <class T, std::size_t Rank, Memory Where = Memory::kHost>
class TensorView {
 public:
  using Shape = std::array<std::size_t, Rank>;

  TensorView() = default;
  /// @throws Error kInternal unless `data` has exactly as many elements as `shape`.
  TensorView(std::span<T> data, Shape shape) : data_(data.data()), shape_(shape) {
    if (data.size() != size()) {
      throw Error(ErrorCode::kInternal, "TensorView",
                  std::to_string(data.size()) + " elements do not fill a shape of " + std::to_string(size()));
    }
  }
  /// Converts a view of mutable elements to a view of const elements.
  template <class U>
    requires(std::same_as<const U, T>)
  // NOLINTNEXTLINE(google-explicit-constructor): as std::span's
  TensorView(const TensorView<U, Rank, Where>& other) : data_(other.data()), shape_(other.shape()) {}

  T* data() const noexcept { return data_; }
  std::span<T> span() const noexcept { return {data_, size()}; }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t extent(std::size_t axis) const noexcept { return shape_[axis]; }
  std::size_t size() const noexcept {
    std::size_t product = 1;
    for (const std::size_t extent : shape_) product *= extent;
    return product;
  }
  bool empty() const noexcept { return size() == 0; }

  template <std::convertible_to<std::size_t>... Index>
    requires(Where == Memory::kHost && sizeof...(Index) == Rank)
  T& operator()(Index... index) const noexcept {
    const std::array<std::size_t, Rank> at{static_cast<std::size_t>(index)...};
    std::size_t offset = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) offset = offset * shape_[axis] + at[axis];
    return data_[offset];
  }

  /// Returns the sub-tensor at `index` of the outermost axis.
  TensorView<T, Rank - 1, Where> slice(std::size_t index) const requires(Rank > 1) {
    std::array<std::size_t, Rank - 1> inner{};
    std::size_t stride = 1;
    for (std::size_t axis = 1; axis < Rank; ++axis) stride *= inner[axis - 1] = shape_[axis];
    return {std::span<T>(data_ + index * stride, stride), inner};
  }

  /// Returns a view of these elements with another shape of equal size.
  template <std::size_t NewRank>
  TensorView<T, NewRank, Where> reshape(std::array<std::size_t, NewRank> shape) const {
    return {span(), shape};
  }

 private:
  T* data_ = nullptr;
  Shape shape_{};
};

}  // namespace kvs::inline core
