// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kvs::inline tasks {

/// Nouns, adjectives and verbs, in byte order, each once.
const std::vector<std::string>& plain_words();
/// Returns "adjective-noun" in byte order: some tens of thousands.
const std::vector<std::string>& compound_words();

}  // namespace kvs::inline tasks
