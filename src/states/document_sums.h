// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "io/checkpoint.h"
#include "states/state_source.h"
#include "turns/turns.h"

namespace kvs::inline states {

/// Adds the documents from `first` on to sums over documents, and keeps the sums in `checkpoint` from time to time.
/// @param sums  has add(source, document), which may run in turns, and state(), the sums for the checkpoint
/// @param done  called with the number of documents so far
template <class Sums>
void add_documents(Sums& sums, StateSource& source, std::size_t first, Checkpoint& checkpoint,
                   const std::function<void(std::size_t)>& done) {
  const std::size_t together = source.visits_together(0);
  done(first);
  run_in_groups(
      first, source.documents(), together, [&](std::size_t n) { sums.add(source, n); },
      [&](std::size_t n) {
        done(n + 1);
        const bool whole = (n + 1 - first) % together == 0;  // no other document is in the sums in part
        if (whole && checkpoint.due()) checkpoint.save(n + 1, sums.state());
      });
}

}  // namespace kvs::inline states
