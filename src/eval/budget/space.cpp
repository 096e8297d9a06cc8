#include "eval/budget/space.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "core/interrupt.h"
#include "model/cache_shape.h"
#include "policy/methods.h"

namespace kvs {
namespace {

/// Of a document; a method that compresses its prefix once needs one.
constexpr double kStandardPrefix = 0.75;

/// Of settings, by the method or by the model's shape.
bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kUnsupported;
}

}  // namespace

BudgetSpace::BudgetSpace(const CacheMethod& method, const ModelConfig& model, std::size_t tokens, std::size_t bytes,
                         Json fixed)
    : method_(method),
      model_(model),
      tokens_(tokens),
      bytes_(bytes),
      fixed_(std::move(fixed)),
      shape_(cache_shape(model)),
      sizes_(method_, shape_, model.layers, tokens),
      grid_(budget_grid(method.name)) {
  if (method.prefill == Prefill::kWhole && !fixed_.contains("prefix"))
    fixed_["prefix"] = static_cast<std::size_t>(kStandardPrefix * static_cast<double>(tokens));
}

Parameters BudgetSpace::parameters(const Json& settings) const {
  return Parameters({{settings, "", ErrorCode::kUsage}}, model_.layers);
}

Cache BudgetSpace::cache(const Json& settings) const {
  Parameters values = parameters(settings);
  return make_cache(method_, values, shape_);
}

std::unique_ptr<LayerCache> BudgetSpace::layer_cache(const Json& settings, std::size_t layer) const {
  Parameters values = parameters(settings);
  return make_layer_cache(method_, values, layer, shape_);
}

Json BudgetSpace::with_fixed(Json settings) const {
  settings.update(fixed_);
  return settings;
}

Json BudgetSpace::resolved(const Json& settings) const {
  Parameters values = parameters(settings);
  (void)make_cache(method_, values, shape_);
  return values.resolved();
}

std::optional<Json> BudgetSpace::fitted(const Json& settings) {
  const auto sized = sizes_.fitted(with_fixed(settings), bytes_);
  return sized ? std::optional(resolved(*sized)) : std::nullopt;
}

std::vector<Json> BudgetSpace::candidates() {
  const std::vector<Json> all = grid_.settings();
  std::vector<Json> result;
  std::optional<Error> refusal;
  for (const Json& settings : all) {
    check_interrupt();
    try {
      auto one = fitted(settings);
      if (one && std::ranges::find(result, *one) == result.end()) result.push_back(std::move(*one));
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      if (!refusal) refusal = error;
    }
  }
  if (result.empty()) refuse(all, refusal);
  return result;
}

std::optional<Json> BudgetSpace::standard() {
  for (const Json& settings : grid_.standards()) try {
      if (auto one = fitted(settings)) return one;
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
    }
  return std::nullopt;
}

std::vector<Json> BudgetSpace::unsized() const {
  std::vector<Json> all;
  for (const Json& settings : grid_.settings()) try {
      Json one = resolved(with_fixed(settings));
      if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
    }
  return all;
}

void BudgetSpace::refuse(const std::vector<Json>& settings, const std::optional<Error>& refusal) {
  std::optional<std::pair<std::size_t, Json>> nearest;
  for (const Json& one : settings) try {
      const std::size_t least = sizes_.least(with_fixed(one));
      if (!nearest || least < nearest->first) nearest.emplace(least, with_fixed(one));
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
    }
  if (!nearest) throw Error(*refusal);
  const auto described = [&](std::size_t bytes) {
    char share[32];
    std::snprintf(share, sizeof share, "%.1f %%",
                  100 * static_cast<double>(bytes) / static_cast<double>(sizes_.full()));
    return std::to_string(bytes / tokens_) + " B a token (" + share + ")";
  };
  throw Error(ErrorCode::kUsage, "budget of " + std::string(method_.name),
              "found " + described(bytes_) + ", expected at least " + described(nearest->first) + ", which takes " +
                  nearest->second.dump());
}

}  // namespace kvs
