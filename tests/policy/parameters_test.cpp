#include "policy/parameters.h"

#include <gtest/gtest.h>

#include "policy/methods.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using test::expect_error;

Cache make(const std::string& method, const std::vector<std::string>& settings,
           const std::vector<std::size_t>& windows = {0, 0, 0}) {
  const Json values = parameters_of(settings);
  Parameters parameters(values, "--set", ErrorCode::kUsage, windows.size());
  return make_cache(*find_cache_method(method), parameters, windows);
}

TEST(ParametersOf, ReadsNumbersWordsAndLists) {
  EXPECT_EQ(parameters_of(std::vector<std::string>{"a=4", "b=0.5", "c=on", "d=1,2.5,x"}),
            Json({{"a", 4}, {"b", 0.5}, {"c", "on"}, {"d", {1, 2.5, "x"}}}));
  for (const char* bad : {"a", "=4", "a="})
    expect_error(ErrorCode::kUsage, "expected NAME=VALUE", [&] { parameters_of(std::vector<std::string>{bad}); });
  expect_error(ErrorCode::kUsage, "'a' twice", [] { parameters_of(std::vector<std::string>{"a=1", "a=2"}); });
}

TEST(MakeCache, RefusesWhatNoMethodCanWorkWith) {
  const auto refuse = [](const std::string& method, const std::vector<std::string>& settings, std::string_view part) {
    expect_error(ErrorCode::kUsage, part, [&] { make(method, settings); });
  };
  refuse("full", {"cache_size=4"}, "--set cache_size: found a parameter that the method does not have");
  refuse("freqkv", {}, "--set cache_size: found nothing, expected a whole number of at least 6");
  refuse("freqkv", {"cache_size=5"}, "found 5, expected a whole number of at least 6");
  refuse("freqkv", {"cache_size=64.5"}, "found 64.5, expected a whole number");
  refuse("freqkv", {"cache_size=64", "gamma=1.5"}, "expected a number from 0.0 to 1.0");
  refuse("freqkv", {"cache_size=64", "gamma=nan"}, "expected a number from 0.0 to 1.0");
  refuse("freqkv", {"cache_size=64", "gamma=0.01"}, "keeps 0 of 60 slots");
  refuse("dropping", {"cache_size=64", "gamma=1"}, "keeps 60 of 60 slots");
  refuse("freqkv", {"cache_size=64", "band=middle"}, "expected one of low, high");
  refuse("freqkv", {"cache_size=64", "rescale=yes"}, "expected on or off");
  refuse("freqkv", {"cache_size=64,64"}, "found a list of 2, expected a value for each of 3 layers");
  refuse("lagkv", {"lag=0"}, "expected a whole number of at least 1");
  refuse("l2norm", {"ratio=0.5"}, "--set prefix: found nothing, expected a whole number of at least 1");
  refuse("l2norm", {"prefix=8", "prefill=stepwise"}, "expected whole");
  refuse("l2norm", {"prefix=8", "skip_layers=0,3"}, "expected numbers below 3, or none");
  refuse("freqkv", {"cache_size=64", "prefix=8", "prefill=whole"}, "expected stepwise");
  refuse("lagkv", {"prefill=whole"}, "--set prefix: found 0");
  refuse("streaming", {"cache_size=4"}, "expected a whole number of at least 5");
}

TEST(MakeCache, TakesAValueForEachLayer) {
  EXPECT_EQ(make("freqkv", {"cache_size=64,80,100", "gamma=0.5,0.25,0.75"}).room(), 64U);
  EXPECT_EQ(make("lagkv", {"lag=16,8,32", "sinks=4"}).room(), 20U);  // S + 2L of the second
}

TEST(MakeCache, LeavesLayersWithASlidingWindowAlone) {
  EXPECT_EQ(make("freqkv", {"cache_size=64"}, {32, 0, 32}).room(), 64U);
  EXPECT_EQ(make("freqkv", {"cache_size=64"}, {32, 16, 32}).room(), LayerCache::kUnlimited);
}

}  // namespace
}  // namespace kvs
