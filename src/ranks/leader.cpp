// SPDX-License-Identifier: Apache-2.0
#include "ranks/leader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/stop_request.h"
#include "ranks/message.h"
#include "ranks/ordered_collector.h"
#include "ranks/unit_queue.h"
#include "ranks/watch.h"

namespace kvs::inline ranks {
namespace {

using Open = std::function<std::unique_ptr<Transport>()>;

constexpr std::chrono::microseconds kMinPause{20}, kMaxPause{2000};  // between two looks for messages
constexpr std::chrono::milliseconds kLook{20};

class Leader final : public Ranks {
 public:
  using Ranks::broadcast;
  explicit Leader(Open open) {
    std::promise<void> opened;
    thread_ = std::thread([this, &opened, open = std::move(open)] { serve(open, opened); });
    try {
      opened.get_future().get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~Leader() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  std::size_t rank() const noexcept override { return 0; }
  std::size_t size() const noexcept override { return size_; }
  std::string name(std::size_t rank) const override {
    return "rank " + std::to_string(rank) + " on " + transport_->host(rank);
  }

  UnitResult broadcast(UnitResult words) override {
    const std::string body = encode(words);
    const std::scoped_lock lock(mutex_);
    const std::uint64_t turn = ++turn_;
    for (std::size_t rank = 1; rank < size_; ++rank) outbox_.emplace_back(rank, Message{Talk::kTold, turn, 0, 0, body});
    return words;
  }

  std::vector<Json> gather(Json word) override {
    std::unique_lock lock(mutex_);
    const std::uint64_t turn = ++turn_;
    auto& words = words_[turn];
    while (words.size() + 1 < size_) wait(lock);
    std::vector<Json> all{std::move(word)};
    for (auto& [rank, other] : words) all.push_back(std::move(other));
    words_.erase(turn);
    return all;
  }

  void check() const override {
    {
      const std::scoped_lock lock(mutex_);
      if (failure_) throw Error(*failure_);
    }
    check_interrupt();
  }
  void fail(int, const std::string&) noexcept override {}  // this rank prints its own line
  void finish() override {
    {
      std::unique_lock lock(mutex_);
      while (left_ + 1 < size_) wait(lock);
    }
    done_ = true;
    stop_ = true;
    thread_.join();
    check();
  }

 protected:
  void run(const Units& units, const Start& start, const Take& take, bool late) override {
    OrderedCollector collector(units.first, take, [this] { check(); });
    open(units, collector);
    try {
      while (const auto unit = next_unit()) {
        note_document(*unit / units.per_document);
        PendingResult result = start(*unit);
        if (late) {
          collector.push(*unit, 0, std::move(result));  // the collector asks for the result in order
          continue;
        }
        UnitResult whole = result();
        const std::size_t bytes = bytes_of(whole);
        collector.push(*unit, bytes,
                       [kept = std::make_shared<UnitResult>(std::move(whole))] { return std::move(*kept); });
      }
      collector.finish(units.last);
    } catch (...) {
      close();
      throw;
    }
    close();
  }

 private:
  struct Asked {
    std::size_t rank;
    Message message;
  };

  // Functions that the main thread calls.

  void open(const Units& units, OrderedCollector& collector) {
    const std::scoped_lock lock(mutex_);
    ++turn_;
    queue_.emplace(units, size_);
    collector_ = &collector;
  }
  /// Ranks that ask later are told that the units are over.
  void close() {
    const std::scoped_lock lock(mutex_);
    queue_.reset();
    collector_ = nullptr;
  }
  std::optional<std::size_t> next_unit() {
    std::unique_lock lock(mutex_);
    while (true) {
      if (const auto unit = queue_->take(0, collector_->next())) return unit;
      if (queue_->is_over(0)) return std::nullopt;
      wait(lock);
    }
  }
  void wait(std::unique_lock<std::mutex>& lock) {
    changed_.wait_for(lock, kLook);
    lock.unlock();
    check();
    lock.lock();
  }

  // Functions of the thread that talks to the other ranks.

  void serve(const Open& open, std::promise<void>& opened) {
    try {
      transport_ = open();
      size_ = transport_->size();
    } catch (...) {
      opened.set_exception(std::current_exception());
      return;
    }
    opened.set_value();
    try {
      auto pause = kMinPause;
      while (!stop_) {
        if (serve_once()) {
          pause = kMinPause;
          continue;
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, kMaxPause);
      }
      if (done_) say_goodbye();
    } catch (const Error& error) {
      note_failure(error);
    } catch (const std::exception& error) {
      note_failure(Error(ErrorCode::kEnvironment, "MPI", error.what()));
    }
  }

  bool serve_once() {
    bool busy = false;
    while (auto message = transport_->receive()) {
      hear(message->from, decode_message(std::move(message->bytes)));
      busy = true;
    }
    std::deque<std::pair<std::size_t, Message>> out;
    {
      const std::scoped_lock lock(mutex_);
      answer();
      out.swap(outbox_);
    }
    for (auto& [rank, message] : out) transport_->send(rank, encode(message));
    return busy || !out.empty();
  }

  void say_goodbye() {
    for (std::size_t rank = 1; rank < size_; ++rank) transport_->send(rank, encode(Message{Talk::kDone}));
    while (!transport_->flushed()) std::this_thread::sleep_for(kMinPause);
    transport_->finish();
  }

  void hear(std::size_t rank, Message message) {
    const std::scoped_lock lock(mutex_);
    switch (message.talk) {
      case Talk::kNext:
      case Talk::kReady:
        asked_.push_back({rank, std::move(message)});
        break;
      case Talk::kResult:
        hear_result(std::move(message));
        break;
      case Talk::kWord:
        words_[message.turn].emplace(rank, parse_json(message.body, "word of a rank"));
        break;
      case Talk::kLeft:
        ++left_;
        break;
      case Talk::kFailed:
        if (!failure_) failure_.emplace(static_cast<ErrorCode>(message.unit), name(rank), message.body);
        request_stop();
        break;
      default:
        throw Error(ErrorCode::kInternal, name(rank), "found a message that only rank 0 sends");
    }
    changed_.notify_all();
  }

  void hear_result(Message message) {
    if (collector_ == nullptr || message.turn != turn_) return;  // the run is ending
    const std::size_t bytes = message.body.size();
    collector_->give(message.unit, bytes, [body = std::make_shared<std::string>(std::move(message.body))] {
      return decode_result(std::exchange(*body, {}));
    });
  }

  /// Answers the waiting ranks for which there is an answer now.
  void answer() {
    std::deque<Asked> still;
    for (Asked& asked : asked_) {
      const auto reply = answer_to(asked);
      if (reply)
        outbox_.emplace_back(asked.rank, *reply);
      else
        still.push_back(std::move(asked));
    }
    asked_ = std::move(still);
  }

  std::optional<Message> answer_to(const Asked& asked) {
    const Message& message = asked.message;
    if (message.turn > turn_) return std::nullopt;  // this rank has not reached that turn yet
    const bool open = message.turn == turn_ && collector_ != nullptr;
    if (message.talk == Talk::kReady) {
      if (!open || !collector_->has_room(message.unit, message.bytes)) return std::nullopt;
      return Message{Talk::kSend, message.turn, message.unit};
    }
    if (!open || queue_->is_over(asked.rank)) return Message{Talk::kOver, message.turn};
    const auto unit = queue_->take(asked.rank, collector_->next());
    if (!unit) return std::nullopt;
    return Message{Talk::kUnit, message.turn, *unit};
  }

  void note_failure(const Error& error) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_.emplace(error);
    request_stop();
    changed_.notify_all();
  }

  std::unique_ptr<Transport> transport_;
  std::size_t size_ = 1;
  std::atomic<bool> stop_ = false, done_ = false;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t turn_ = 0;
  std::size_t left_ = 0;  // ranks that have finished
  std::optional<UnitQueue> queue_;
  OrderedCollector* collector_ = nullptr;                       // for the units that are shared now
  std::deque<Asked> asked_;                                     // and not yet answered
  std::deque<std::pair<std::size_t, Message>> outbox_;          // (rank, message)
  std::map<std::uint64_t, std::map<std::size_t, Json>> words_;  // [turn][rank]
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<Ranks> make_leader(Open open) { return std::make_unique<Leader>(std::move(open)); }

}  // namespace kvs::inline ranks
