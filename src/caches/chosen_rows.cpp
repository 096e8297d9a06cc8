// SPDX-License-Identifier: Apache-2.0
#include "caches/chosen_rows.h"

#include <algorithm>

#include "caches/token_rows.h"
#include "core/error.h"

namespace kvs::inline caches {
namespace {

/// The rows of all tokens that the tokens of a member may read: [position].
class AllRows {
 public:
  AllRows(const LayerStates& states, const PastKv& past)
      : own_(states.k), earlier_(past.count()), past_(states.backend, {1, 1, earlier_, width()}) {
    if (states.k.extent(1) != 1 || !past.late_k.empty())
      throw Error(ErrorCode::kInternal, "cache", "chosen rows of several heads or parts");
    if (earlier_ > 0) states.backend.decode_rows(past.k, 0, past_.view());
  }

  std::size_t width() const noexcept { return own_.extent(3); }
  const float* row(std::size_t member, std::size_t position) const noexcept {
    if (position < earlier_) return past_.view().data() + position * width();
    return own_.data() + (member * own_.extent(2) + position - earlier_) * width();
  }

 private:
  BackendView<float, 4> own_;
  std::size_t earlier_;
  BackendTensor<float, 4> past_;
};

}  // namespace

void attend_chosen(const LayerStates& states, const PastKv& past, const Operand& out) {
  Backend& backend = states.backend;
  const AllRows rows(states, past);
  const auto [members, heads, tokens, width] = states.q.shape();
  const std::size_t most = states.chosen.size() / (members * tokens), member_values = heads * tokens * width;
  const BackendTensor<float, 4> read(backend, {1, 1, most, width});
  for (std::size_t n = 0; n < members * tokens; ++n) {
    const std::size_t member = n / tokens;
    std::size_t count = 0;
    for (const std::int32_t position : states.chosen.subspan(n * most, most)) {
      if (position < 0) break;
      backend.copy(read.view().data() + count++ * width, rows.row(member, static_cast<std::size_t>(position)),
                   width * sizeof(float));
    }
    const BackendView<const float, 4> queries({states.q.data() + member * member_values, member_values},
                                              {1, heads, tokens, width});
    const RowBuffer::Part q = RowBuffer::part_of(backend, queries, n % tokens, 1);
    // The order of the rows has no effect: the last one takes the place of the token's own.
    const BackendView<const float, 4> last({read.view().data() + (count - 1) * width, width}, {1, 1, 1, width});
    AttentionInput input{.q = q.view(), .k = last, .v = last, .scale = states.scale, .softcap = states.softcap};
    if (count > 1) input.past = {read.view(), read.view(), count - 1};
    backend.attention(input, operand_rows(backend, out, n, 1));
  }
}

}  // namespace kvs::inline caches
