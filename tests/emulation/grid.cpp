// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/grid.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim{}, gridDim{};

namespace kvs::cuda {
constexpr std::size_t kGuardBytes = 1024;
constinit thread_local uint4 dynamic_shared_memory[(emulation::kMaxSharedBytes + kGuardBytes) / sizeof(uint4)]{};
}  // namespace kvs::cuda

namespace kvs::emulation {
namespace {

namespace context = boost::context;
constexpr std::size_t kStackBytes = 256 << 10;
constexpr unsigned char kUnwritten = 0xff;  // NaN in every type

enum class State { kReady, kAtBarrier, kInWarp, kDone };

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct Thread {
  State state = State::kReady;
  context::fiber fiber;                  // null before the first run
  std::deque<std::vector<Copy>> copies;  // by group; the last one is open
};

struct Warp {
  void (*operation)(void* const*) = nullptr;
  void* lanes[kLanes] = {};
  int arrived = 0;
};

/// Runs one block after the other on one processor thread.
class Worker {
 public:
  void run(const GridShape& shape, uint3 block, const std::function<void()>& body);
  void wait_for_block();
  void wait_for_warp(void (*operation)(void* const*), void* own);
  Thread& thread() { return threads_[current_]; }
  std::size_t shared_bytes() const { return shared_bytes_; }
  bool chance() { return random_() / 2 % 2 == 0; }
  int lane() const { return static_cast<int>(current_ % kLanes); }

 private:
  void turn();
  bool run_warp(std::size_t warp);
  void resume(std::size_t index);
  void suspend(State state);
  void open_barrier_if_all_wait();
  [[noreturn]] void fail_stuck() const;

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<context::fiber> idle_;  // fibers whose thread has ended, kept for the next ones
  context::fiber scheduler_;
  std::size_t shared_bytes_ = 0, favourite_ = 0, current_ = 0, live_ = 0, waiting_ = 0;
  std::minstd_rand random_;
};

// Never deleted: the end of a waiting fiber would unwind its stack.
thread_local Worker& worker = *new Worker;

std::uint32_t seed() {
  const char* const text = std::getenv("KVS_EMULATION_SEED");
  return text == nullptr ? 1 : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

void Worker::run(const GridShape& shape, uint3 block, const std::function<void()>& body) {
  auto* const shared = reinterpret_cast<unsigned char*>(cuda::dynamic_shared_memory);
  std::memset(shared, kUnwritten, shape.shared_bytes + cuda::kGuardBytes);
  shared_bytes_ = shape.shared_bytes;
  body_ = &body;
  blockIdx = block;
  blockDim = shape.threads;
  gridDim = shape.blocks;
  live_ = shape.threads.x;
  waiting_ = favourite_ = 0;
  threads_.clear();
  threads_.resize(live_);
  warps_.assign(live_ / kLanes, {});
  random_.seed(seed() + block.x + 977 * block.y + 7919 * block.z);
  while (live_ > 0) turn();
  const unsigned char* const guard = shared + shape.shared_bytes;
  if (std::any_of(guard, guard + cuda::kGuardBytes, [](unsigned char byte) { return byte != kUnwritten; }))
    fail("a write behind the end of dynamic shared memory");
}

/// Mostly continues with the last turn's warp as long as it can run, so that this warp gets ahead of the others.
void Worker::turn() {
  const std::size_t count = warps_.size();
  if (random_() % 4 == 0) favourite_ = random_() % count;
  for (std::size_t i = 0; i < count; ++i, favourite_ = (favourite_ + 1) % count)
    if (run_warp(favourite_)) return;
  fail_stuck();
}

/// Runs every lane that can run until it waits or ends. @return whether there was one
bool Worker::run_warp(std::size_t warp) {
  const std::size_t first = random_() % kLanes, step = random_() | 1U;  // an odd step reaches all lanes
  bool ran = false;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::size_t index = warp * kLanes + (first + i * step) % kLanes;
    if (threads_[index].state != State::kReady) continue;
    resume(index);
    ran = true;
  }
  return ran;
}

void Worker::resume(std::size_t index) {
  Thread& next = threads_[index];
  current_ = index;
  threadIdx = {static_cast<unsigned>(index), 0, 0};
  if (!next.fiber) {
    if (idle_.empty()) {
      idle_.emplace_back(std::allocator_arg, context::protected_fixedsize_stack(kStackBytes),
                         [this](context::fiber&& from) {
                           for (;;) {
                             scheduler_ = std::move(from);
                             (*body_)();
                             thread().state = State::kDone;
                             from = std::move(scheduler_).resume();
                           }
                           return std::move(from);
                         });
    }
    next.fiber = std::move(idle_.back());
    idle_.pop_back();
  }
  next.fiber = std::move(next.fiber).resume();
  if (next.state != State::kDone) return;
  idle_.push_back(std::move(next.fiber));
  --live_;
  open_barrier_if_all_wait();
}

void Worker::suspend(State state) {
  thread().state = state;
  scheduler_ = std::move(scheduler_).resume();
}

void Worker::open_barrier_if_all_wait() {
  if (waiting_ == 0 || waiting_ != live_) return;
  waiting_ = 0;
  for (Thread& each : threads_)
    if (each.state == State::kAtBarrier) each.state = State::kReady;
}

void Worker::wait_for_block() {
  ++waiting_;
  if (waiting_ == live_) return open_barrier_if_all_wait();
  suspend(State::kAtBarrier);
}

void Worker::wait_for_warp(void (*operation)(void* const*), void* own) {
  Warp& warp = warps_[current_ / kLanes];
  if (warp.arrived > 0 && warp.operation != operation) fail("lanes of one warp in different warp operations");
  warp.operation = operation;
  warp.lanes[lane()] = own;
  if (++warp.arrived < kLanes) return suspend(State::kInWarp);
  warp.arrived = 0;
  operation(warp.lanes);
  const std::size_t first = current_ / kLanes * kLanes;
  for (std::size_t i = first; i < first + kLanes; ++i) threads_[i].state = State::kReady;
}

void Worker::fail_stuck() const {
  const auto count = [&](State state) { return std::to_string(std::ranges::count(threads_, state, &Thread::state)); };
  fail("a block whose threads wait for each other: " + count(State::kAtBarrier) + " at a barrier, " +
       count(State::kInWarp) + " in a warp operation, " + count(State::kDone) + " ended");
}

void perform(const Copy& copy) {
  if (copy.from == nullptr)
    std::memset(copy.to, 0, copy.bytes);
  else
    std::memcpy(copy.to, copy.from, copy.bytes);
}

std::mutex granted_mutex;
std::map<const void*, std::size_t>& granted() {
  static std::map<const void*, std::size_t> bytes;
  return bytes;
}

}  // namespace

void fail(std::string_view found) {
  std::fprintf(stderr, "emulated CUDA: found %.*s\n", static_cast<int>(found.size()), found.data());
  std::abort();
}

cudaError_t check_shape(const GridShape& shape, const void* kernel) {
  const auto [blocks, threads, shared_bytes] = shape;
  if (threads.y != 1 || threads.z != 1 || threads.x % kLanes != 0) fail("a block that is no row of whole warps");
  const bool runs = blocks.x > 0 && blocks.y > 0 && blocks.z > 0 && blocks.x <= 0x7fffffff && blocks.y <= 65535 &&
                    blocks.z <= 65535 && threads.x > 0 && threads.x <= 1024;
  const std::lock_guard lock(granted_mutex);
  const auto found = granted().find(kernel);
  const std::size_t most = found == granted().end() ? 48 << 10 : found->second;
  return runs && shared_bytes <= most ? cudaSuccess : cudaErrorInvalidValue;
}

void grant_shared_memory(const void* kernel, std::size_t bytes) {
  if (bytes > kMaxSharedBytes) fail("more dynamic shared memory than a block can have");
  const std::lock_guard lock(granted_mutex);
  granted()[kernel] = bytes;
}

void run_grid(const GridShape& shape, const std::function<void()>& body) {
  const auto [x, y, z] = shape.blocks;
  const long long count = 1LL * x * y * z;
#pragma omp parallel for schedule(dynamic)
  for (long long i = 0; i < count; ++i) {
    const auto block = static_cast<unsigned long long>(i);
    worker.run(
        shape,
        {static_cast<unsigned>(block % x), static_cast<unsigned>(block / x % y), static_cast<unsigned>(block / x / y)},
        body);
  }
}

int lane() { return worker.lane(); }
void block_barrier() { worker.wait_for_block(); }
void warp_operation(void (*operation)(void* const*), void* own) { worker.wait_for_warp(operation, own); }

void copy_later(void* to, const void* from, std::size_t bytes) {
  auto& groups = worker.thread().copies;
  if (groups.empty()) groups.emplace_back();
  const Copy copy{to, from, bytes};
  if (worker.chance())
    perform(copy);
  else
    groups.back().push_back(copy);
}

void end_copy_group() {
  auto& groups = worker.thread().copies;
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}

void wait_for_copies(std::size_t groups_left) {
  auto& groups = worker.thread().copies;
  for (; groups.size() > groups_left + 1; groups.pop_front()) std::ranges::for_each(groups.front(), perform);
}

void check_shared(std::size_t first, std::size_t bytes) {
  if (first % bytes != 0 || first + bytes > worker.shared_bytes()) fail("an odd address of dynamic shared memory");
}

}  // namespace kvs::emulation
