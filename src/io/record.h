// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "io/json.h"

namespace kvs::inline io {

// Readers of a journal's records. A CRC proves that a line is intact, not that a run would have written it. Each reader
// throws Error kInput "JOURNAL: line N: /pointer: found X, expected Y".

/// Reads a finite number whose size limit keeps sums over all records finite.
double record_real(const JsonCursor& value);
/// Reads a sum of NLLs of `tokens` tokens that f32 logits can produce. The perplexity may overflow a double.
double record_nll(const JsonCursor& value, std::size_t tokens);
/// Reads an array of `count` finite numbers.
std::vector<double> record_reals(const JsonCursor& list, std::size_t count);
/// Reads a count whose size limit keeps sums over all records from overflow.
std::size_t record_size(const JsonCursor& value, std::size_t least = 0, std::size_t most = std::size_t{1} << 48);
/// Reads ascending indices below `end`.
std::vector<std::size_t> record_indices(const JsonCursor& list, std::size_t end);
/// Checks that a member equals the value that the resumed run expects.
void require_record(const JsonCursor& found, const Json& expected);

}  // namespace kvs::inline io
