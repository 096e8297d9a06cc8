// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "export/codec/group_codec.h"
#include "results/head.h"

namespace kvs::inline exporting {

/// The codecs of a config of `transform`. Constant after its construction.
class ConfigCodec {
 public:
  /// Checks that a config was made for the caller's model. @param model  of the config
  using CheckModel = std::function<void(const Json& config, const ModelRecord& model)>;

  /// @throws Error as read_config() and `check`; kInput for a config of another method
  ConfigCodec(const std::filesystem::path& config, int threads, const CheckModel& check);

  /// @throws Error kUsage for a layer that the config does not code
  const GroupCodec& group(std::uint32_t layer) const;
  /// @throws Error kData for a stream without a layer of the config
  const GroupCodec& of_stream(std::span<const std::byte> stream) const;
  /// Returns true if the config codes this layer.
  bool codes(std::uint32_t layer) const noexcept { return groups_.contains(layer); }
  /// Returns the digest of the config's tensors (64 digits), whose first half every stream has.
  const std::string& digest() const noexcept { return digest_; }
  /// Returns the config's path, for messages.
  const std::string& where() const noexcept { return where_; }

 private:
  std::string where_, digest_;
  std::map<std::uint32_t, std::shared_ptr<const GroupCodec>> groups_;  // [layer]
};

}  // namespace kvs::inline exporting
