#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kvs {

/// Carries bytes between the ranks of a run. Used by one thread, the one that opened it.
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
  /// Queues a message; those from one rank to another arrive in their order.  @throws Error kEnvironment
  virtual void send(std::size_t to, std::string bytes) = 0;
  /// Whether all that was sent has left. Sending goes on in this call and in receive() alone.
  virtual bool flushed() = 0;
  /// A message that is here, if any.  @throws Error kEnvironment
  virtual std::optional<Message> receive() = 0;
  /// The last call: waits for all ranks.
  virtual void finish() = 0;
};

/// What the library with MPI in it exports: opens the transport, or gives nullptr and the reason.
/// @param thread_may_differ  whether another thread than main's opens it
using OpenTransport = Transport* (*)(bool thread_may_differ, std::string& reason);
inline constexpr char kOpenTransport[] = "kvs_open_transport";

}  // namespace kvs
