// SPDX-License-Identifier: Apache-2.0
// What several commands share.
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "run/identity.h"
#include "version.h"

namespace kvs::inline cli {

bool is_first_action(const Options& options, std::string_view first, std::string_view second) {
  const std::string& action = options.text("ACTION");
  if (action != first && action != second)
    throw Error(ErrorCode::kUsage, "ACTION",
                "found '" + action + "', expected " + std::string(first) + " or " + std::string(second));
  return action == first;
}

Json output_identity(const Options& options, const std::string& model_sha256) {
  Json json = digests_of_configs(options);
  json.update(Json{{"model_sha256", model_sha256}, {"command", options.command()}, {"tool_version", kToolVersion}});
  return json;
}

}  // namespace kvs::inline cli
