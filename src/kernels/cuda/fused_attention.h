// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace kvs::cuda {

/// Attention of tokens to themselves, in bf16 with f32 sums. q: [member, query_head, token, head_dim]; k, v:
/// [member, kv_head, token, head_dim]; out: [member, token, query_head, head_dim]; all packed and aligned to 16 bytes.
struct FusedShape {
  std::size_t members = 0, query_heads = 0, kv_heads = 0, tokens = 0, head_dim = 0;
  std::size_t window = 0;  // as in AttentionInput
  float scale = 1;
  bool causal = true;
  auto operator<=>(const FusedShape&) const = default;
};

/// One shape, prepared by a library.
class FusedPlan {
 public:
  virtual ~FusedPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  /// Queues the attention on the planner's stream.  @throws Error if the library cannot.
  virtual void run(const void* q, const void* k, const void* v, void* out, void* workspace) = 0;
};

class FusedPlanner {
 public:
  virtual ~FusedPlanner() = default;
  /// Returns the library's name and version.
  virtual std::string name() const = 0;
  /// Takes about half a second on the host.  @throws Error kUnsupported with the library's message if it refuses.
  virtual std::unique_ptr<FusedPlan> plan(const FusedShape& shape) = 0;
};

/// kAuto: the library where it fits and is faster, else our kernel. kOwn: always our kernel. kLibrary: the library
/// wherever it fits; a missing library is an error.
enum class AttentionChoice : std::uint8_t { kAuto, kOwn, kLibrary };

/// Parses the value of KVS_ATTENTION: "" and "auto", "own", "cudnn".  @throws Error kUsage for another value.
AttentionChoice attention_choice(std::string_view name);

/// Decides which attention a shape gets. The decision depends on the shape and, after kMaxPlans shapes, on their order,
/// never on time. It is constant for a shape within a run.
class FusedAttention {
 public:
  using MakePlanner = std::function<std::unique_ptr<FusedPlanner>()>;
  /// With kAuto, each shape costs half a second once. Shapes beyond this number use our kernel, so that documents of
  /// many lengths do not spend more time on plans than on passes.
  static constexpr std::size_t kMaxPlans = 8;
  /// With kAuto. For fewer tokens, attention is a few percent of a pass.
  static constexpr std::size_t kFewestTokens = 1024;

  /// @param make  called at the first shape that fits; throws Error kEnvironment if the library is missing
  FusedAttention(AttentionChoice choice, MakePlanner make) : choice_(choice), make_(std::move(make)) {}

  /// Returns null if our kernel must run: with a past, a soft cap, a head_dim that is not a multiple of 8, 2^31 or more
  /// values in an array, fewer than kFewestTokens tokens, or a shape that the library refuses.
  /// @throws Error kEnvironment with kLibrary if there is no library.
  FusedPlan* plan_for(const FusedShape& shape, std::size_t past, float softcap);
  /// Queues a plan of plan_for(). Returns false if the library fails: our kernel must then run this call, and it also
  /// runs all later calls of any shape.  @throws Error of the library with kLibrary.
  bool run(FusedPlan& plan, const void* q, const void* k, const void* v, void* out, void* workspace);
  /// Returns in one line which attention ran, and why not the library.
  std::string note() const;

 private:
  FusedPlan* planned(const FusedShape& shape);

  AttentionChoice choice_;
  MakePlanner make_;
  std::unique_ptr<FusedPlanner> planner_;                   // declared before the plans, which must not outlive it
  std::map<FusedShape, std::unique_ptr<FusedPlan>> plans_;  // null: refused
  std::string problem_;                                     // error of the library or its last refused shape
  bool failed_ = false;                                     // true after a plan failed to run
  std::size_t calls_ = 0, fused_calls_ = 0;
};

}  // namespace kvs::cuda
