// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/calibrate_fixture.h"
#include "tests/cli/letters_tokenizer.h"

namespace kvs::testing {

/// A WordNet that knows "rays" and "beam" as one.
inline void write_small_wordnet(const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder);
  for (const char* part : {"noun", "verb", "adj", "adv"})
    for (const char* file : {"index.", "data."})
      std::ofstream(folder / (std::string(file) + part)) << "  the licence\n";
  std::ofstream(folder / "index.noun") << "rays n 1 0 1 0 00000000  \nbeam n 1 0 1 0 00000000  \n";
  std::ofstream(folder / "data.noun") << "00000000 19 n 02 rays 0 beam 0 000 | light  \n";
}

/// `times` a sentence of rays.
inline void write_text_of_rays(const std::filesystem::path& path, int times) {
  std::ofstream text(path);
  for (int n = 0; n < times; ++n) text << "if all the rays are at one place, then ";
}

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
