// SPDX-License-Identifier: Apache-2.0
// libkvs_mpi.so: the only code that uses MPI. Programs load it when mpirun has started them.
#include "ranks/transport.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kvs::inline ranks {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts bytes in int
constexpr int kMore = 1, kLast = 2;                   // tags: whether further pieces of the message follow

void require(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error(ErrorCode::kEnvironment, "MPI", std::string(what) + " failed: " + text.data());
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(bool thread_may_differ) {
    // Otherwise PMIx locks memory that it shares with mpirun, which then hangs if a rank is killed holding the lock.
    ::setenv("PMIX_MCA_gds", "hash", 0);
    int level = MPI_THREAD_SINGLE;
    require(MPI_Init_thread(nullptr, nullptr, thread_may_differ ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED, &level),
            "MPI_Init_thread");
    require(MPI_Comm_dup(MPI_COMM_WORLD, &ranks_), "MPI_Comm_dup");
    require(MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int rank = 0, size = 0;
    require(MPI_Comm_rank(ranks_, &rank), "MPI_Comm_rank");
    require(MPI_Comm_size(ranks_, &size), "MPI_Comm_size");
    rank_ = static_cast<std::size_t>(rank);
    learn_hosts(static_cast<std::size_t>(size));
  }

  std::size_t rank() const noexcept override { return rank_; }
  std::size_t size() const noexcept override { return hosts_.size(); }
  const std::string& host(std::size_t rank) const override { return hosts_.at(rank); }

  void send(std::size_t to, std::string bytes) override {
    Sent& sent = sent_.emplace_back(Sent{std::move(bytes), {}});
    for (std::size_t at = 0; at == 0 || at < sent.bytes.size(); at += kPiece) {
      const std::size_t count = std::min(kPiece, sent.bytes.size() - at);
      const int tag = at + count < sent.bytes.size() ? kMore : kLast;
      require(MPI_Isend(sent.bytes.data() + at, static_cast<int>(count), MPI_BYTE, static_cast<int>(to), tag, ranks_,
                        &sent.requests.emplace_back()),
              "MPI_Isend");
    }
    progress();
  }

  bool flushed() override {
    progress();
    return sent_.empty();
  }

  std::optional<Message> receive() override {
    progress();
    while (true) {
      int here = 0, count = 0;
      MPI_Status status;
      require(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ranks_, &here, &status), "MPI_Iprobe");
      if (here == 0) return std::nullopt;
      require(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
      std::string& bytes = received_[status.MPI_SOURCE];
      const std::size_t before = bytes.size();
      bytes.resize(before + static_cast<std::size_t>(count));
      require(MPI_Recv(bytes.data() + before, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, ranks_,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
      if (status.MPI_TAG == kLast)
        return Message{static_cast<std::size_t>(status.MPI_SOURCE), std::exchange(bytes, {})};
    }
  }

  void finish() override { require(MPI_Finalize(), "MPI_Finalize"); }

 private:
  struct Sent {
    std::string bytes;
    std::vector<MPI_Request> requests;
  };

  void learn_hosts(std::size_t size) {
    std::vector<char> mine(MPI_MAX_PROCESSOR_NAME), all(size * mine.size());
    int length = 0;
    require(MPI_Get_processor_name(mine.data(), &length), "MPI_Get_processor_name");
    const int count = static_cast<int>(mine.size());
    require(MPI_Allgather(mine.data(), count, MPI_CHAR, all.data(), count, MPI_CHAR, ranks_), "MPI_Allgather");
    for (std::size_t rank = 0; rank < size; ++rank) hosts_.emplace_back(all.data() + rank * mine.size());
  }

  /// Releases messages that have been sent.
  void progress() {
    for (auto sent = sent_.begin(); sent != sent_.end();) {
      int done = 0;
      require(MPI_Testall(static_cast<int>(sent->requests.size()), sent->requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
      sent = done != 0 ? sent_.erase(sent) : std::next(sent);
    }
  }

  MPI_Comm ranks_ = MPI_COMM_NULL;
  std::size_t rank_ = 0;
  std::vector<std::string> hosts_;       // [rank]
  std::list<Sent> sent_;                 // messages whose bytes MPI still reads
  std::map<int, std::string> received_;  // [rank] pieces of a message
};

}  // namespace

extern "C" Transport* kvs_open_transport(bool thread_may_differ, std::string& reason) {
  try {
    return std::make_unique<MpiTransport>(thread_may_differ).release();
  } catch (const std::exception& error) {
    reason = error.what();
    return nullptr;
  }
}

}  // namespace kvs::inline ranks
