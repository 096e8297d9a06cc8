// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/ablation_options.h"

#include <cstdint>

#include "core/error.h"

namespace kvs::inline calibrate {

void add_ablation_options(OptionTable& table, const AblationDefaults& defaults) {
  table
      .value("protocol", "continuation|in-place", "continuation: filter a prefix and score the tokens after it",
             "continuation")
      .value("prefix", "P", "continuation: tokens of the prefix, which is ablated (default: 3/4 of the window)")
      .from(1)
      .value("sinks", "S", "first tokens that stay unchanged (in-place: 0)", defaults.sinks)
      .from(0)
      .value("recent", "R", "last tokens of the prefix that stay unchanged (in-place: 0)", defaults.recent)
      .from(0)
      .value("transform", "dft|dct", "transform along the token axis", defaults.transform)
      .value("key-space", "k_post|k_pre", "filter keys after RoPE (k_post) or before it (k_pre)", defaults.key_space);
}

AblationSetup ablation_setup(const Options& options, std::size_t tokens) {
  const auto most = static_cast<std::int64_t>(tokens);
  const bool continuation = options.text("protocol") == "continuation";
  const auto apart = [&](const char* name) { return continuation ? options.count(name, 0, most) : 0; };
  const std::size_t prefix = options.has("prefix") ? options.count("prefix", 1, most - 2) : tokens * 3 / 4;
  const AblationSetup setup{continuation,
                            tokens,
                            prefix,
                            apart("sinks"),
                            apart("recent"),
                            options.text("transform") == "dct" ? Transform::kDct : Transform::kDft,
                            options.text("key-space") == "k_pre"};
  check_setup(setup);
  return setup;
}

void check_setup(const AblationSetup& setup) {
  if (!setup.continuation) return;
  if (setup.sinks + setup.recent >= setup.prefix)
    throw Error(ErrorCode::kUsage, "--prefix",
                "found " + std::to_string(setup.prefix) + " tokens, expected more than sinks and recent together, " +
                    std::to_string(setup.sinks + setup.recent));
  if (setup.prefix + 2 > setup.tokens)
    throw Error(ErrorCode::kUsage, "--window",
                "found " + std::to_string(setup.tokens) + " tokens with a prefix of " + std::to_string(setup.prefix) +
                    ", expected at least 2 after the prefix: one is scored given the other");
}

}  // namespace kvs::inline calibrate
