// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ranks/ranks.h"

namespace kvs::inline ranks {

/// The kinds of messages between rank 0 and the other ranks.
enum class Talk : std::uint8_t {
  kNext,    // to rank 0: asks for the next unit
  kUnit,    // from rank 0: the unit
  kOver,    // from rank 0: no unit is left
  kReady,   // to rank 0: a result of `bytes` bytes is ready
  kSend,    // from rank 0: there is room for the result
  kResult,  // to rank 0: the result
  kTold,    // from rank 0: the value of broadcast()
  kWord,    // to rank 0: this rank's value of gather()
  kFailed,  // to rank 0: this rank ends with a status (unit) and a line (body)
  kLeft,    // to rank 0: this rank has finished
  kDone,    // from rank 0: all ranks have finished
};

/// One message. `turn` counts the calls of share(), broadcast() and gather().
struct Message {
  Talk talk = Talk::kNext;
  std::uint64_t turn = 0, unit = 0, bytes = 0;
  std::string body = {};
};

std::string encode(const Message& message);
/// @throws Error kInternal if the bytes are not a message
Message decode_message(std::string bytes);

/// Encodes doubles bit for bit.
std::string encode(const UnitResult& result);
UnitResult decode_result(std::string_view bytes);
/// Returns the approximate size of encode(result).
std::size_t bytes_of(const UnitResult& result);

}  // namespace kvs::inline ranks
