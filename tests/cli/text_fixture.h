#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/calibrate_fixture.h"
#include "tests/cli/letters_tokenizer.h"

namespace kvs::testing {

/// The tiny model with letters_tokenizer() and a context of 2,048 tokens.
class TextPrograms : public CalibratePrograms {
 protected:
  TextPrograms() {
    const std::filesystem::path model = folder_ / "model";
    Json config = parse_json(slurp(model / "config.json"), "config.json");
    config["max_position_embeddings"] = 2048;
    std::ofstream(model / "config.json") << dump_json(config);
    std::ofstream(model / "tokenizer.json") << dump_json(letters_tokenizer());
  }
};

}  // namespace kvs::testing
