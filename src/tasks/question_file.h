// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tasks/task.h"
#include "texts/text_reader.h"

namespace kvs::inline tasks {

/// The questions of a file, and its digest.
struct QuestionFile {
  std::vector<TaskSample> samples;
  std::string sha256;
};

/// Reads a *.jsonl file with one object per line: `context`, `question`, and `answers` (a list of alternatives) or
/// `choices` (a list) with `answer`, the index of the right one. If neither the end of the context nor the start of the
/// question is white space, a newline separates them. Blank lines are skipped.
/// @throws Error kInput "FILE: line N: /FIELD: found X, expected Y"; kData if there is no question.
QuestionFile read_questions(const std::filesystem::path& path);

/// Reads the text to hide things in: the texts of the arguments, separated by newlines.
/// @throws Error like TextReader::read(); kInput for an argument without a word.
std::string read_haystack(std::span<const std::string> arguments, TextReader& reader);

}  // namespace kvs::inline tasks
