#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ranks/ranks.h"

namespace kvs {

/// What ranks say to rank 0, and it to them.
enum class Talk : std::uint8_t {
  kNext,    // to rank 0: the next unit, please
  kUnit,    // from rank 0: this one
  kOver,    // from rank 0: there is none left
  kReady,   // to rank 0: a result of so many bytes
  kSend,    // from rank 0: there is room for it
  kResult,  // to rank 0: the result
  kTold,    // from rank 0: what it says to all
  kWord,    // to rank 0: what a rank says
  kFailed,  // to rank 0: this rank ends, with a status (unit) and a line (body)
  kLeft,    // to rank 0: nothing is left to do here
  kDone,    // from rank 0: nor anywhere
};

/// One message. `turn` counts the calls of share(), broadcast() and gather().
struct Message {
  Talk talk = Talk::kNext;
  std::uint64_t turn = 0, unit = 0, bytes = 0;
  std::string body = {};
};

std::string encode(const Message& message);
/// @throws Error kInternal if the bytes are none
Message decode_message(std::string bytes);

/// Doubles as their bits.
std::string encode(const UnitResult& result);
UnitResult decode_result(std::string_view bytes);
/// About what encode() gives.
std::size_t bytes_of(const UnitResult& result);

}  // namespace kvs
