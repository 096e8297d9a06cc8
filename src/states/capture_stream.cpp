// SPDX-License-Identifier: Apache-2.0
#include "states/capture_stream.h"

#include <algorithm>
#include <utility>

namespace kvs::inline states {
namespace {

constexpr std::size_t kMaxThreads = 8;  // more threads do not make a file system faster

}  // namespace

CaptureStream::CaptureStream(Backend& backend, CapturePart& part, const CaptureHeader& header) : part_(&part) {
  const std::size_t threads = std::min(backend.spare_threads(), kMaxThreads);
  for (std::size_t n = 0; n < threads + 1; ++n) {  // each thread writes one buffer while the device fills another
    buffers_.push_back(backend.make_staging(header.largest_state(), header.store));
    free_.push_back(buffers_.back().get());
  }
  try {
    for (std::size_t n = 0; n < threads; ++n) threads_.emplace_back([this] { run(); });
  } catch (...) {  // a limit on threads or memory
    stop();
    throw;
  }
}

CaptureStream::~CaptureStream() { stop(); }

void CaptureStream::stop() {
  {
    const std::scoped_lock lock(mutex_);
    while (!jobs_.empty() && !jobs_.back().stores) jobs_.pop_back();
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CaptureStream::begin_document(std::uint64_t document, std::span<const std::int32_t> tokens) {
  std::unique_lock lock(mutex_);
  rethrow(lock);
  begun_.emplace(document, part_->begin_document(document, tokens));
}

std::shared_ptr<CaptureDocument> CaptureStream::begun(std::uint64_t document) {
  const std::scoped_lock lock(mutex_);
  return begun_.at(document);
}

void CaptureStream::write_states(std::uint64_t document, std::int32_t layer, StateKind kind,
                                 BackendView<const float, 3> states) {
  Staging* const buffer = free_buffer();
  buffer->start(states.span());
  add({[this, buffer, layer, kind, to = begun(document)] {
    to->write_stored(layer, kind, buffer->wait());
    const std::scoped_lock lock(mutex_);
    free_.push_back(buffer);
  }});
}

void CaptureStream::write_nll(std::uint64_t document, std::vector<float> nll) {
  add({[to = begun(document), values = std::move(nll)] { to->write_nll(values); }});
}

void CaptureStream::store_document(std::uint64_t document) {
  add({[this, document, of = begun(document)] {
         Json record = of->store();
         const std::scoped_lock lock(mutex_);
         stored_.emplace(document, std::move(record));
       },
       true});
  const std::scoped_lock lock(mutex_);
  begun_.erase(document);
}

Json CaptureStream::stored(std::uint64_t document) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || stored_.contains(document); });
  if (!stored_.contains(document)) rethrow(lock);
  return std::move(stored_.extract(document).mapped());
}

/// Rethrows a failure once no thread is running.
void CaptureStream::rethrow(std::unique_lock<std::mutex>& lock) {
  if (!failure_) return;
  changed_.wait(lock, [this] { return running_ == 0; });
  std::rethrow_exception(failure_);
}

void CaptureStream::add(Job job) {
  {
    std::unique_lock lock(mutex_);
    rethrow(lock);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

Staging* CaptureStream::free_buffer() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || !free_.empty(); });
  rethrow(lock);
  Staging* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

bool CaptureStream::can_start() const {
  return !jobs_.empty() && !storing_ && (!jobs_.front().stores || running_ == 0);
}

void CaptureStream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return can_start() || (stop_ && jobs_.empty()); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    ++running_;
    storing_ = job.stores;
    lock.unlock();
    std::exception_ptr failure;
    try {
      job.work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --running_;
    storing_ = false;
    if (failure) {
      if (!failure_) failure_ = failure;
      jobs_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace kvs::inline states
