// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "kernels/backend.h"

namespace kvs::inline states {

/// Writes a capture during the forward pass: states leave the device through a few staging buffers; separate threads
/// convert, check and write them. Several documents may be written at once; each is stored after all of its data. The
/// next call rethrows what a thread has thrown; nothing is written after that.
class CaptureStream {
 public:
  /// @param part  must outlive this
  CaptureStream(Backend& backend, CapturePart& part, const CaptureHeader& header);
  /// Stores the complete documents. The rest of the queue is not written.
  ~CaptureStream();
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;

  void begin_document(std::uint64_t document, std::span<const std::int32_t> tokens);
  /// states: [heads, tokens, head_dim]; may be overwritten once this returns. Waits while all buffers are in use.
  void write_states(std::uint64_t document, std::int32_t layer, StateKind kind, BackendView<const float, 3> states);
  void write_nll(std::uint64_t document, std::vector<float> nll);
  /// Ends the document, after all of its data.
  void store_document(std::uint64_t document);
  /// Waits until a document is stored. @return its record for CaptureWriter::commit(). Once per document, any thread
  Json stored(std::uint64_t document);

 private:
  struct Job {
    std::function<void()> work;
    bool stores = false;  // a document: starts after all earlier jobs and before all later ones
  };

  void add(Job job);
  std::shared_ptr<CaptureDocument> begun(std::uint64_t document);
  void run();
  void stop();
  bool can_start() const;
  Staging* free_buffer();
  void rethrow(std::unique_lock<std::mutex>& lock);

  CapturePart* part_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::size_t running_ = 0;
  bool storing_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::map<std::uint64_t, std::shared_ptr<CaptureDocument>> begun_;  // and not ended by store_document()
  std::map<std::uint64_t, Json> stored_;                             // records of documents that have not been fetched
  std::vector<std::unique_ptr<Staging>> buffers_;
  std::vector<Staging*> free_;
  std::vector<std::thread> threads_;
};

}  // namespace kvs::inline states
