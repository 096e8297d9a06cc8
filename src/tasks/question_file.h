#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tasks/task.h"
#include "texts/text_reader.h"

namespace kvs {

/// Questions that a file asks, and its digest.
struct QuestionFile {
  std::vector<TaskSample> samples;
  std::string sha256;
};

/// A *.jsonl file, an object a line: `context`, `question`, and `answers` (a list of alternatives) or `choices` (a
/// list) with `answer`, the index of the right one. Where neither end of context and question is a blank, a line end
/// parts them. Blank lines are skipped.
/// @throws Error kInput "FILE: line N: /FIELD: found X, expected Y"; kData if there is no question.
QuestionFile read_questions(const std::filesystem::path& path);

/// A text to hide things in: those of the arguments, one below the other.
/// @throws Error as TextReader::read(); kInput for an argument without a word.
std::string read_haystack(std::span<const std::string> arguments, TextReader& reader);

}  // namespace kvs
