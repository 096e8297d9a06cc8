// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace kvs::inline turns {

/// A stack that a thread changes to and from. AddressSanitizer is told of each change; without it the calls do nothing.
class SwitchedStack {
 public:
  /// A stack allocator of Boost.Context that notes the memory of the stack.
  class Allocator {
   public:
    Allocator(std::size_t bytes, SwitchedStack& stack) : memory_(bytes), stack_(&stack) {}
    boost::context::stack_context allocate() {
      const boost::context::stack_context context = memory_.allocate();
      stack_->top_ = context.sp;
      stack_->bytes_ = context.size;
      return context;
    }
    void deallocate(boost::context::stack_context& context) noexcept {
#ifdef __SANITIZE_ADDRESS__
      // Frames that never return leave red zones, which would stay on the addresses for the next mapping.
      __asan_unpoison_memory_region(static_cast<std::byte*>(context.sp) - context.size, context.size);
#endif
      memory_.deallocate(context);
    }

   private:
    boost::context::protected_fixedsize_stack memory_;
    SwitchedStack* stack_;
  };
  Allocator allocator(std::size_t bytes) { return {bytes, *this}; }

#ifdef __SANITIZE_ADDRESS__
  // On the thread's own stack: before and after a call of this stack.
  void enter() { __sanitizer_start_switch_fiber(&outside_, static_cast<std::byte*>(top_) - bytes_, bytes_); }
  void leave() { __sanitizer_finish_switch_fiber(outside_, nullptr, nullptr); }
  // On this stack.
  void begin() { __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_bytes_); }
  void give_way() { __sanitizer_start_switch_fiber(&inside_, outside_bottom_, outside_bytes_); }
  void go_on() { __sanitizer_finish_switch_fiber(inside_, &outside_bottom_, &outside_bytes_); }
  void end() { __sanitizer_start_switch_fiber(nullptr, outside_bottom_, outside_bytes_); }
#else
  void enter() {}
  void leave() {}
  void begin() {}
  void give_way() {}
  void go_on() {}
  void end() {}
#endif

 private:
  void* top_ = nullptr;
  std::size_t bytes_ = 0;
#ifdef __SANITIZE_ADDRESS__
  void *outside_ = nullptr, *inside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_bytes_ = 0;
#endif
};

}  // namespace kvs::inline turns
