#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {

/// The tiny model with a tokenizer of single characters (capitals are small letters, what is missing is #) and a
/// context of 2,048 tokens.
class TextPrograms : public CalibratePrograms {
 protected:
  TextPrograms() {
    const std::filesystem::path model = folder_ / "model";
    Json config = parse_json(slurp(model / "config.json"), "config.json");
    config["max_position_embeddings"] = 2048;
    std::ofstream(model / "config.json") << dump_json(config);
    Json vocabulary = Json::object();
    for (const char c : std::string("#abcdefghijklmnopqrstuvwxyz0123456789.,:?!-'"))
      vocabulary[std::string(1, c)] = vocabulary.size();
    vocabulary["\u0120"] = vocabulary.size();  // a space, and a line's end
    vocabulary["\u010a"] = vocabulary.size();
    const Json tokenizer{
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
    std::ofstream(model / "tokenizer.json") << dump_json(tokenizer);
  }
};

}  // namespace kvs::testing
