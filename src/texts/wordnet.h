// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/string_map.h"

namespace kvs::inline texts {

/// WordNet's database (index.POS and data.POS, wndb(5WN)), as Debian's wordnet-base installs it. Thread-safe.
class WordNet {
 public:
  static constexpr const char* kDebianFolder = "/usr/share/wordnet";

  /// Reads the indexes. Synsets are read on demand.
  /// @throws Error kEnvironment naming the package if a file is missing; kInput if a line is malformed.
  explicit WordNet(const std::filesystem::path& folder);

  /// Returns the synonyms of `word`: for each part of speech, those of the most frequent sense that has any. Ascending,
  /// distinct, without `word` itself. Only words of a–z are returned, so no phrases or proper nouns. Returns nothing
  /// for any other `word`.
  /// @throws Error kInput if the index points to something that is not a synset
  std::vector<std::string> synonyms(std::string_view word) const;
  /// Digest of all files.
  const std::string& sha256() const noexcept { return sha256_; }

 private:
  /// The senses of each word as offsets in `data`, most frequent first.
  struct PartOfSpeech {
    MappedFile data;
    StringMap<std::vector<std::uint32_t>> senses;
  };

  std::vector<PartOfSpeech> parts_;
  std::string sha256_;
};

}  // namespace kvs::inline texts
