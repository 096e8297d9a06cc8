// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm_table.h"

#include <sstream>

#include "core/error.h"

namespace kvs::cuda {
namespace {

struct Line {
  GemmPlace place;
  GemmShape shape;
  GemmAlgorithm algorithm{};
};

/// @return false if the line is not valid
bool read(std::istringstream words, Line& line) {
  std::string type, y_type, bias, rest;
  GemmShape& s = line.shape;
  words >> line.place.version >> line.place.architecture >> line.place.multiprocessors >> s.rows >> s.columns >>
      s.inner >> type >> y_type >> bias >> std::hex;
  for (std::uint64_t& word : line.algorithm) words >> word;
  if (!words || words >> rest) return false;
  const auto operand = dtype_from_name(type), result = dtype_from_name(y_type);
  if (!operand || !result || (bias != "bias" && bias != "-")) return false;
  s.type = *operand;
  s.y_type = *result;
  s.bias = bias == "bias";
  return true;
}

}  // namespace

std::string to_string(const GemmShape& shape) {
  return std::to_string(shape.rows) + " x " + std::to_string(shape.columns) + " from " + std::to_string(shape.inner) +
         ", " + std::string(name_of(shape.type)) + " to " + std::string(name_of(shape.y_type)) +
         (shape.bias ? ", bias" : "");
}

GemmTable::GemmTable(std::string_view text, const std::string& name, const GemmPlace& place) {
  std::istringstream lines{std::string(text)};
  std::string words;
  for (std::size_t number = 1; std::getline(lines, words); ++number) {
    words = words.substr(0, words.find('#'));
    if (words.find_first_not_of(" \t\r") == std::string::npos) continue;
    Line line;
    if (!read(std::istringstream(words), line))
      throw Error(ErrorCode::kInput, name,
                  "line " + std::to_string(number) + ": found '" + words + "', expected a product and its algorithm");
    if (line.place == place) algorithms_[line.shape] = line.algorithm;
  }
}

const GemmAlgorithm* GemmTable::find(const GemmShape& shape) const {
  const auto found = algorithms_.find(shape);
  return found == algorithms_.end() ? nullptr : &found->second;
}

std::string gemm_line(const GemmPlace& place, const GemmShape& shape, const GemmAlgorithm& algorithm) {
  std::ostringstream line;
  line << place.version << ' ' << place.architecture << ' ' << place.multiprocessors << ' ' << shape.rows << ' '
       << shape.columns << ' ' << shape.inner << ' ' << name_of(shape.type) << ' ' << name_of(shape.y_type) << ' '
       << (shape.bias ? "bias" : "-") << std::hex;
  for (const std::uint64_t word : algorithm) line << ' ' << word;
  return std::move(line).str();
}

}  // namespace kvs::cuda
