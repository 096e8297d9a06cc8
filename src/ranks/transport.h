// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kvs::inline ranks {

/// Carries bytes between the ranks of a run. Only the thread that opened it may use it.
class Transport {
 public:
  struct Message {
    std::size_t from = 0;
    std::string bytes;
  };

  virtual ~Transport() = default;
  virtual std::size_t rank() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;
  virtual const std::string& host(std::size_t rank) const = 0;
  /// Queues a message. Messages from one rank to another arrive in order.  @throws Error kEnvironment
  virtual void send(std::size_t to, std::string bytes) = 0;
  /// Returns true if all messages have left. Messages are sent only during this call and during receive().
  virtual bool flushed() = 0;
  /// Returns a message that has arrived, if any.  @throws Error kEnvironment
  virtual std::optional<Message> receive() = 0;
  /// Waits for all ranks. Must be the last call.
  virtual void finish() = 0;
};

/// Symbol that the library with MPI exports: opens the transport, or returns nullptr and sets the reason.
/// @param thread_may_differ  true if another thread than the main thread opens it
using OpenTransport = Transport* (*)(bool thread_may_differ, std::string& reason);
inline constexpr char kOpenTransport[] = "kvs_open_transport";

}  // namespace kvs::inline ranks
