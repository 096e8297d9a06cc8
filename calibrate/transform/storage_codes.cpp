// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/storage_codes.h"

#include <algorithm>
#include <deque>

#include "calibrate/transform/storage_blocks.h"

namespace kvs::inline calibrate {
namespace {

class StorageCodes final : public JointCodes {
 public:
  using JointCodes::JointCodes;

  std::size_t count() const noexcept override { return count_; }
  CacheBytes bytes() const noexcept override { return {.stored = bytes_, .used = bytes_}; }

  void drop_front(Backend&, std::size_t count) override {
    count_ -= count;
    for (gone_ += count; !blocks_.empty() && gone_ >= blocks_.front().tokens; blocks_.pop_front()) {
      gone_ -= blocks_.front().tokens;
      bytes_ -= blocks_.front().bytes();
    }
  }

  std::vector<double> append(Backend& backend, std::span<const TokenStates> layers, std::size_t first,
                             const BackendView<const float, 4>& inputs) override {
    BackendCoding ops(backend);
    const std::vector<float> rows = download(backend, row_values(ops, products(), layers, inputs).k);
    blocks_.push_back(encode_block(products(), std::span(rows).subspan(first * coefficients())));
    bytes_ += blocks_.back().bytes();
    count_ += blocks_.back().tokens;
    return {};
  }

 private:
  std::size_t coefficients() const noexcept { return products().scales.size(); }

  RowBuffer::Part decode(Backend& backend, std::size_t first, std::size_t count) const override {
    const std::size_t size = coefficients();
    std::vector<float> rows(count * size);
    std::size_t at = 0;  // of the block's first token, from the first one of all blocks
    first += gone_;
    for (const LevelBlock& block : blocks_) {
      const std::size_t from = std::max(first, at), to = std::min(first + count, at + block.tokens);
      if (from < to)
        decode_block(products(), block, from - at, std::span(rows).subspan((from - first) * size, (to - from) * size));
      at += block.tokens;
    }
    RowBuffer::Part part(backend, {1, 1, count, size});
    backend.upload(part.view().data(), rows.data(), rows.size() * sizeof(float));
    return part;
  }

  std::deque<LevelBlock> blocks_;
  std::size_t count_ = 0, gone_ = 0, bytes_ = 0;  // gone_: dropped tokens of the first block
};

}  // namespace

std::unique_ptr<TransformCodes> make_storage_codes(std::shared_ptr<const TransformProducts> products) {
  return std::make_unique<StorageCodes>(std::move(products));
}

}  // namespace kvs::inline calibrate
