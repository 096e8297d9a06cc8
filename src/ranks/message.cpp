// SPDX-License-Identifier: Apache-2.0
#include "ranks/message.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace kvs::inline ranks {
namespace {

constexpr std::size_t kNumbers = 4, kHead = kNumbers * sizeof(std::uint64_t);

void put(std::string& bytes, std::uint64_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string_view cut(std::string_view& bytes, std::size_t size) {
  if (size > bytes.size())
    throw Error(ErrorCode::kInternal, "message between ranks",
                "found " + std::to_string(bytes.size()) + " bytes, expected " + std::to_string(size));
  const std::string_view head = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return head;
}

std::uint64_t get(std::string_view& bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, cut(bytes, sizeof(value)).data(), sizeof(value));
  return value;
}

}  // namespace

std::string encode(const Message& message) {
  std::string bytes;
  bytes.reserve(kHead + message.body.size());
  for (const std::uint64_t value :
       {static_cast<std::uint64_t>(message.talk), message.turn, message.unit, message.bytes})
    put(bytes, value);
  bytes += message.body;
  return bytes;
}

Message decode_message(std::string bytes) {
  std::string_view rest = bytes;
  Message message;
  message.talk = static_cast<Talk>(get(rest));
  message.turn = get(rest);
  message.unit = get(rest);
  message.bytes = get(rest);
  bytes.erase(0, kHead);
  message.body = std::move(bytes);
  return message;
}

std::string encode(const UnitResult& result) {
  const std::string record = dump_json(result.record, -1);
  std::string bytes;
  bytes.reserve(bytes_of(result) + record.size());
  put(bytes, record.size());
  bytes += record;
  put(bytes, result.sums.size());
  for (const std::vector<double>& sum : result.sums) {
    put(bytes, sum.size());
    bytes.append(reinterpret_cast<const char*>(sum.data()), sum.size() * sizeof(double));
  }
  return bytes;
}

UnitResult decode_result(std::string_view bytes) {
  UnitResult result;
  result.record = parse_json(cut(bytes, get(bytes)), "record of a rank", {.bytes = SIZE_MAX, .values = SIZE_MAX});
  result.sums.resize(get(bytes));
  for (std::vector<double>& sum : result.sums) {
    const std::uint64_t count = get(bytes);
    const std::string_view values = cut(bytes, count * sizeof(double));
    sum.resize(count);
    std::ranges::copy(values, reinterpret_cast<char*>(sum.data()));
  }
  return result;
}

std::size_t bytes_of(const UnitResult& result) {
  std::size_t bytes = kHead;
  for (const std::vector<double>& sum : result.sums) bytes += sizeof(std::uint64_t) + sum.size() * sizeof(double);
  return bytes;
}

}  // namespace kvs::inline ranks
