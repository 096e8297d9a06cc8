// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/elitekv/ropelite.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kFree = std::numeric_limits<std::size_t>::max();

/// Maps each chunk of a layer to the head that owns it; holds the heads' errors.
class Assignment {
 public:
  Assignment(TensorView<const double, 3> grams, std::size_t count)
      : grams_(grams), owner_(grams.extent(1), kFree), owned_(grams.extent(0), 0), count_(count) {
    for (std::size_t head = 0; head < owned_.size(); ++head) errors_.push_back(error(head));
  }

  /// Assigns the free chunk that lowers a head's error most to that head, until every head has its count.
  void fill() {
    for (std::size_t pick = 0; pick < owned_.size() * count_; ++pick) {
      double best_gain = -std::numeric_limits<double>::infinity();
      std::size_t best_head = 0, best_chunk = 0;
      for (std::size_t head = 0; head < owned_.size(); ++head) {
        if (owned_[head] == count_) continue;
        for (std::size_t chunk = 0; chunk < owner_.size(); ++chunk) {
          if (owner_[chunk] != kFree) continue;
          const double gain = errors_[head] - error_if(head, {{chunk, head}});
          if (gain > best_gain) best_gain = gain, best_head = head, best_chunk = chunk;
        }
      }
      owner_[best_chunk] = best_head;
      ++owned_[best_head];
      errors_[best_head] = error(best_head);
    }
  }

  /// Makes the first exchange that lowers the total by more than rounding. Returns false if there is none.
  bool improve() {
    for (std::size_t a = 0; a < owner_.size(); ++a)
      for (std::size_t b = 0; b < owner_.size(); ++b)
        if (owner_[a] != kFree && owner_[a] != owner_[b] && (owner_[b] == kFree || a < b) && exchange(a, b))
          return true;
    return false;
  }

  std::vector<std::size_t> chunks_of(std::size_t head) const {
    std::vector<std::size_t> result;
    for (std::size_t chunk = 0; chunk < owner_.size(); ++chunk)
      if (owner_[chunk] == head) result.push_back(chunk);
    return result;
  }

 private:
  using Changes = std::initializer_list<std::pair<std::size_t, std::size_t>>;  // chunk, its new owner

  double error(std::size_t head) const {
    double sum = 0;
    for (std::size_t row = 0; row < owner_.size(); ++row) {
      if (owner_[row] == head) continue;
      for (std::size_t column = 0; column < owner_.size(); ++column)
        if (owner_[column] != head) sum += grams_(head, row, column);
    }
    return sum;
  }

  double error_if(std::size_t head, Changes changes) {
    std::vector<std::size_t> before;
    for (const auto& [chunk, owner] : changes) before.push_back(std::exchange(owner_[chunk], owner));
    const double result = error(head);
    std::size_t at = 0;
    for (const auto& [chunk, owner] : changes) owner_[chunk] = before[at++];
    return result;
  }

  bool exchange(std::size_t a, std::size_t b) {
    const std::size_t first = owner_[a], second = owner_[b];
    const Changes swapped = {{a, second}, {b, first}};
    const double first_error = error_if(first, swapped);
    const double second_error = second == kFree ? 0 : error_if(second, swapped);
    const double before = errors_[first] + (second == kFree ? 0 : errors_[second]);
    if (!(first_error + second_error < before * (1 - 1e-12))) return false;
    std::swap(owner_[a], owner_[b]);
    errors_[first] = first_error;
    if (second != kFree) errors_[second] = second_error;
    return true;
  }

  TensorView<const double, 3> grams_;
  std::vector<std::size_t> owner_;  // [chunk]
  std::vector<std::size_t> owned_;  // [head]: number of chunks
  std::vector<double> errors_;      // [head]
  std::size_t count_;
};

/// Returns the greedy order within a set: each pick leaves the smallest error.
ElitePicks ordered(TensorView<const double, 2> gram, std::vector<std::size_t> chunks) {
  std::vector<std::size_t> order;
  while (!chunks.empty()) {
    const auto best = std::ranges::min_element(chunks, {}, [&](std::size_t chunk) {
      std::vector<std::size_t> with = order;
      with.push_back(chunk);
      return errors_of(gram, with).errors.back();
    });
    order.push_back(*best);
    chunks.erase(best);
  }
  return errors_of(gram, std::move(order));
}

}  // namespace

std::vector<ElitePicks> pick_disjoint(TensorView<const double, 3> grams, std::size_t count) {
  const std::size_t heads = grams.extent(0), chunks = grams.extent(1);
  if (count == 0 || heads * count > chunks)
    throw Error(ErrorCode::kUsage, "disjoint elite chunks",
                "found " + std::to_string(count) + " chunks for each of " + std::to_string(heads) +
                    " heads, expected 1 to " + std::to_string(chunks / heads) +
                    " (rotated channels / 2, shared by the heads)");
  Assignment assignment(grams, count);
  assignment.fill();
  while (assignment.improve()) {
  }
  std::vector<ElitePicks> picks;
  for (std::size_t head = 0; head < heads; ++head)
    picks.push_back(ordered(grams.slice(head), assignment.chunks_of(head)));
  return picks;
}

}  // namespace kvs::inline calibrate
