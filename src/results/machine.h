// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/json_fields.h"

namespace kvs::inline results {

/// What the programs find on a machine: `kvspectrum doctor`.
struct MachineReport {
  struct Part {
    std::string name = {};
    std::string found = {};  // empty: not there
    std::string used_for = {};
    std::string remedy = {};  // what brings a part that is not there
    bool required = false;    // a command fails without it
    static void fields(auto& of, auto&& field) {
      field("name", of.name)("found", of.found)("used_for", of.used_for)("remedy", of.remedy)("required", of.required);
    }
  };
  struct Model {
    std::string path = {};
    std::uint64_t bytes = 0;
    static void fields(auto& of, auto&& field) { field("path", of.path)("bytes", of.bytes); }
  };
  std::vector<Part> parts = {};
  std::string cache = {};  // folder of fetched models
  std::vector<Model> models = {};
  std::string tool_version = {};

  /// Returns true if no required part is missing.
  bool is_complete() const;
  static void fields(auto& of, auto&& field) {
    field("parts", of.parts)("cache", of.cache)("models", of.models)("tool_version", of.tool_version);
  }
};

std::string to_text(const MachineReport& report);

}  // namespace kvs::inline results
