// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

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

/// Adds the documents that a saved state lacks, or all documents. Otherwise like add_documents().
/// @param sums  also has restore(), which takes what state() returned
/// @throws Error of restore()
template <class Sums>
void add_remaining_documents(Sums& sums, StateSource& source, const std::optional<Checkpoint::State>& saved,
                             Checkpoint& checkpoint, const std::function<void(std::size_t)>& done) {
  if (saved) sums.restore(saved->sums);
  add_documents(sums, source, saved ? saved->documents : 0, checkpoint, done);
}

}  // namespace kvs::inline states
