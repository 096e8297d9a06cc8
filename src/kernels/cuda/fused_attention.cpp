// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fused_attention.h"

#include <algorithm>

#include "core/error.h"

namespace kvs::cuda {
namespace {

/// Returns true if the libraries' kernels accept the shape: 16-byte rows and 32-bit indices.
bool fits(const FusedShape& shape) {
  const std::size_t heads = std::max(shape.query_heads, shape.kv_heads);
  return shape.head_dim % 8 == 0 && shape.members * heads * shape.tokens * shape.head_dim < std::size_t{1} << 31;
}

}  // namespace

AttentionChoice attention_choice(std::string_view name) {
  if (name.empty() || name == "auto") return AttentionChoice::kAuto;
  if (name == "own") return AttentionChoice::kOwn;
  if (name == "cudnn") return AttentionChoice::kLibrary;
  throw Error(ErrorCode::kUsage, "KVS_ATTENTION", "found \"" + std::string(name) + "\", expected auto, own or cudnn");
}

FusedPlan* FusedAttention::plan_for(const FusedShape& shape, std::size_t past, float softcap) {
  ++calls_;
  if (choice_ == AttentionChoice::kOwn || failed_ || past > 0 || softcap > 0 || !fits(shape)) return nullptr;
  if (choice_ == AttentionChoice::kAuto && shape.tokens < kFewestTokens) return nullptr;
  FusedShape wanted = shape;
  if (wanted.window >= wanted.tokens) wanted.window = 0;  // such a window hides nothing
  wanted.causal = wanted.tokens > 1;                      // with one query and one key, causality hides nothing
  return planned(wanted);
}

bool FusedAttention::run(FusedPlan& plan, const void* q, const void* k, const void* v, void* out, void* workspace) {
  try {
    plan.run(q, k, v, out, workspace);
  } catch (const Error& error) {
    if (choice_ == AttentionChoice::kLibrary) throw;
    failed_ = true;
    problem_ = error.what();
    return false;
  }
  ++fused_calls_;
  return true;
}

FusedPlan* FusedAttention::planned(const FusedShape& shape) {
  const auto known = plans_.find(shape);
  if (known != plans_.end()) return known->second.get();
  if (make_ != nullptr) {
    try {
      planner_ = make_();
    } catch (const Error& error) {
      if (choice_ == AttentionChoice::kLibrary) throw;
      problem_ = error.what();
    }
    make_ = nullptr;
  }
  if (planner_ == nullptr || (choice_ == AttentionChoice::kAuto && plans_.size() == kMaxPlans)) return nullptr;
  std::unique_ptr<FusedPlan> plan;
  try {
    plan = planner_->plan(shape);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    problem_ = error.what();
  }
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

std::string FusedAttention::note() const {
  std::string note = "own kernel";
  if (planner_ != nullptr) {
    note = planner_->name() + " in " + std::to_string(fused_calls_) + " of " + std::to_string(calls_) +
           " calls, else the own kernel";
  }
  return problem_.empty() ? note : note + "; " + problem_;
}

}  // namespace kvs::cuda
