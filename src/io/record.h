#pragma once

#include <cstddef>
#include <vector>

#include "io/json.h"

namespace kvs {

// Reads of a journal's records. A CRC says that a line is whole, not that it says what a run would have written: each
// throws Error kInput "JOURNAL: line N: /pointer: found X, expected Y".

/// A finite number, so small that sums over all records are finite, too.
double record_real(const JsonCursor& value);
/// A sum of NLLs of `tokens` tokens that f32 logits can have: their perplexity may be beyond a double.
double record_nll(const JsonCursor& value, std::size_t tokens);
/// An array of `count` finite numbers.
std::vector<double> record_reals(const JsonCursor& list, std::size_t count);
/// A count, so small that sums over all records do not overflow.
std::size_t record_size(const JsonCursor& value, std::size_t least = 0, std::size_t most = std::size_t{1} << 48);
/// Ascending indices below `end`.
std::vector<std::size_t> record_indices(const JsonCursor& list, std::size_t end);
/// That a member is what the run that goes on expects there.
void require_record(const JsonCursor& found, const Json& expected);

}  // namespace kvs
