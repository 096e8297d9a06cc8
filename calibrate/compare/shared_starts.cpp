// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/shared_starts.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "caches/full.h"
#include "core/error.h"

namespace kvs::inline compare {
namespace {

/// Returns true if documents of both lengths are rotated by the same angles.
bool same_angles(const ModelConfig& model, std::size_t one, std::size_t other) {
  return std::ranges::all_of(model.ropes, [&](const RopeParameters& rope) {
    return rope_length_class(rope, one) == rope_length_class(rope, other);
  });
}

bool begin_alike(const std::vector<FullStart>& one, const std::vector<FullStart>& other) {
  return std::ranges::equal(one, other, &FullStart::begins_like);
}

/// Returns the number of tokens that a configuration takes, at most `prefix`, so that a run cut after them is bit for
/// bit the same: all tokens of the start, or with kFull also fewer, up to a place where the CPU's attention begins a
/// new run of keys in any case. Token by token, each place will do.
std::size_t tokens_of(const std::vector<FullStart>& starts, std::size_t prefix) {
  constexpr std::size_t kRun = 256;
  const std::size_t whole = starts.front().tokens;
  const auto all = [&](StartKind kind) {
    return std::ranges::all_of(starts, [&](const FullStart& start) { return start.kind == kind; });
  };
  if (whole <= prefix) return whole;
  if (all(StartKind::kByToken)) return prefix;
  return all(StartKind::kFull) ? prefix / kRun * kRun : 0;
}

Cache full_cache(const std::vector<FullStart>& starts) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.reserve(starts.size());
  for (const FullStart& start : starts) layers.push_back(make_full_cache(start.types));
  return Cache(std::move(layers));
}

}  // namespace

SharedStarts::SharedStarts(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                           std::span<const std::function<Cache()>> make, std::size_t prefix)
    : decoder_(&decoder), documents_(documents), make_(make), starts_(make.size()) {
  // A streamed layer would be read once more.
  const Model& model = decoder.model();
  if (prefix == 0 || !can_record(model.config()) || model.placement().streamed_layers > 0) return;
  const std::size_t tokens = documents.front().size();
  for (std::size_t n = 0; n < make.size(); ++n) {
    std::optional<std::vector<FullStart>> start;
    try {
      const Cache cache = make[n]();
      if (same_angles(model.config(), tokens, cache.positions(tokens))) start = cache.full_start();
    } catch (const Error&) {  // said when the configuration is scored
    }
    if (!start) continue;
    const std::size_t shared = tokens_of(*start, prefix);
    if (shared == 0) continue;
    auto group = std::ranges::find_if(groups_, [&](const Group& each) { return begin_alike(each.starts, *start); });
    if (group == groups_.end()) group = groups_.insert(group, {.starts = std::move(*start)});
    starts_[n] = {static_cast<std::size_t>(group - groups_.begin()), shared};
  }
}

std::size_t SharedStarts::max_bytes(const Model& model) {
  constexpr std::size_t kLeast = std::size_t{1} << 30;
  return std::max(kLeast, model.weight_bytes() / 4);
}

void SharedStarts::share(std::span<const std::size_t> configurations) {
  clear();
  for (Group& group : groups_) group.users = group.tokens = 0;
  for (const std::size_t n : configurations)
    if (const Start& start = starts_[n]; start.group) {
      Group& group = groups_[*start.group];
      ++group.users;
      if (start.tokens <= group.tokens) continue;
      group.tokens = start.tokens;
      group.longest = n;
    }
  std::vector<std::size_t> order(groups_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto saved = [&](std::size_t n) { return groups_[n].users * groups_[n].tokens; };
  std::ranges::stable_sort(order, std::ranges::greater(), saved);
  std::size_t left = max_bytes(decoder_->model());
  for (const std::size_t n : order) {
    Group& group = groups_[n];
    const std::size_t bytes = recorded_bytes(decoder_->model().config(), group.tokens);
    group.shared = group.users > 1 && bytes <= left;
    if (group.shared) left -= bytes;
  }
}

RecordedStart SharedStarts::of(std::size_t configuration, std::size_t document) {
  const Start& start = starts_[configuration];
  if (!start.group || !groups_[*start.group].shared) return {};
  if (document_ != document) clear();
  document_ = document;
  Group& group = groups_[*start.group];
  if (!group.states && !group.fails) record(group);
  return group.fails ? RecordedStart{} : RecordedStart{&*group.states, start.tokens};
}

/// A pass that overflows is left to the configurations: their caches may differ before it does.
void SharedStarts::record(Group& group) {
  const bool as_full =
      std::ranges::all_of(group.starts, [](const FullStart& start) { return start.kind == StartKind::kFull; });
  Cache cache = as_full ? full_cache(group.starts) : make_[group.longest]();
  const std::span<const std::int32_t> tokens = documents_[*document_];
  StateRecorder recorder;
  try {
    (void)run_cached(*decoder_, cache, tokens.first(group.tokens),
                     {.positions = cache.positions(tokens.size()), .hook = &recorder}, [](auto&&...) {});
    group.states = recorder.take();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    group.fails = true;
  }
}

void SharedStarts::clear() {
  document_.reset();
  for (Group& group : groups_) {
    group.states.reset();
    group.fails = false;
  }
}

}  // namespace kvs::inline compare
