// SPDX-License-Identifier: Apache-2.0
#include "ranks/follower.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/interrupt.h"
#include "ranks/message.h"
#include "ranks/watch.h"

namespace kvs::inline ranks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSmall = std::size_t{64} << 10;  // a result up to this size is sent without asking for room
constexpr std::chrono::microseconds kShortest{20}, kLongest{1000};
constexpr std::chrono::milliseconds kPatience{20};
constexpr std::chrono::seconds kFarewell{20};

class Follower final : public Ranks {
 public:
  using Ranks::broadcast;
  explicit Follower(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  std::size_t rank() const noexcept override { return transport_->rank(); }
  std::size_t size() const noexcept override { return transport_->size(); }
  std::string name(std::size_t rank) const override {
    return "rank " + std::to_string(rank) + " on " + transport_->host(rank);
  }

  UnitResult broadcast(UnitResult) override {
    ++turn_;
    return decode_result(hear({Talk::kTold}).body);
  }
  std::vector<Json> gather(Json word) override {
    ++turn_;
    say({Talk::kWord, turn_, 0, 0, dump_json(word, -1)});
    return {};
  }

  void fail(int status, const std::string& line) noexcept override {
    try {
      transport_->send(0, encode(Message{Talk::kFailed, turn_, static_cast<std::uint64_t>(status), 0, line}));
      const auto end = Clock::now() + kFarewell;  // rank 0 ends the run, and with it this process
      while (Clock::now() < end && pending_signal() == 0) {
        transport_->flushed();
        std::this_thread::sleep_for(kLongest);
      }
    } catch (const std::exception&) {  // rank 0 is gone
    }
  }
  void finish() override {
    say({Talk::kLeft});
    hear({Talk::kDone});
    transport_->finish();
  }

 protected:
  void run(const Units& units, const Start& start, const Take&, bool late) override {
    ++turn_;
    std::optional<Late> before;
    while (const auto unit = next_unit(before)) {
      note_document(*unit / units.per_document);
      PendingResult result = start(*unit);
      if (before) deliver(*before);
      before.reset();
      if (late)
        before = {*unit, std::move(result)};
      else
        deliver({*unit, std::move(result)});
    }
    if (before) deliver(*before);
  }

 private:
  struct Late {
    std::size_t unit;
    PendingResult result;
  };

  /// @param before  is delivered while this rank is idle, because the next unit may depend on its delivery
  std::optional<std::size_t> next_unit(std::optional<Late>& before) {
    say({Talk::kNext, turn_});
    std::optional<Message> reply = hear_until({Talk::kUnit, Talk::kOver}, Clock::now() + kPatience);
    if (!reply && before) {
      deliver(*before);
      before.reset();
    }
    if (!reply) reply = hear({Talk::kUnit, Talk::kOver});
    if (reply->talk == Talk::kOver) return std::nullopt;
    return reply->unit;
  }

  void deliver(const Late& late) {
    std::string body = encode(late.result());
    if (body.size() > kSmall) {
      say({Talk::kReady, turn_, late.unit, body.size()});
      hear({Talk::kSend});
    }
    say({Talk::kResult, turn_, late.unit, 0, std::move(body)});
  }

  /// Sends a message and waits until it has left: nothing is sent while this rank computes.
  void say(const Message& message) {
    transport_->send(0, encode(message));
    wait_until([this] { return transport_->flushed(); });
  }
  Message hear(std::initializer_list<Talk> talks) { return *hear_until(talks, Clock::time_point::max()); }
  /// Returns the first message of this turn that is one of `talks`, or nullopt at `end`. Other messages are kept.
  std::optional<Message> hear_until(std::initializer_list<Talk> talks, Clock::time_point end) {
    std::optional<Message> found;
    wait_until([&] {
      while (auto message = transport_->receive()) heard_.push_back(decode_message(std::move(message->bytes)));
      const auto at = std::ranges::find_if(heard_, [&](const Message& one) {
        return (one.turn == turn_ || one.talk == Talk::kDone) && std::ranges::find(talks, one.talk) != talks.end();
      });
      if (at == heard_.end()) return Clock::now() >= end;
      found = std::move(*at);
      heard_.erase(at);
      return true;
    });
    return found;
  }
  void wait_until(const std::function<bool()>& done) {
    for (auto pause = kShortest; !done(); pause = std::min(2 * pause, kLongest)) {
      check_interrupt();
      std::this_thread::sleep_for(pause);
    }
  }

  std::unique_ptr<Transport> transport_;
  std::uint64_t turn_ = 0;
  std::deque<Message> heard_;
};

}  // namespace

std::unique_ptr<Ranks> make_follower(std::unique_ptr<Transport> transport) {
  return std::make_unique<Follower>(std::move(transport));
}

}  // namespace kvs::inline ranks
