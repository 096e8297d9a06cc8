// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/json.h"

namespace kvs::testing {

/// A tokenizer.json of single characters: capitals are small letters, what is missing is #. 46 tokens.
inline Json letters_tokenizer() {
  Json vocabulary = Json::object();
  for (const char c : std::string("#abcdefghijklmnopqrstuvwxyz0123456789.,:?!-'"))
    vocabulary[std::string(1, c)] = vocabulary.size();
  vocabulary["\u0120"] = vocabulary.size();  // a space, and a line's end
  vocabulary["\u010a"] = vocabulary.size();
  return {
      {"version", "1.0"},
      {"added_tokens", Json::array()},
      {"normalizer", {{"type", "Lowercase"}}},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", "#"},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocabulary},
        {"merges", Json::array()}}}};
}

}  // namespace kvs::testing
