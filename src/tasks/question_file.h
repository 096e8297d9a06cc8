#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/task.h"

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

/// A text to hide things in: files one after the other, of *.jsonl files the `text` of each line. Adds their digests to
/// `sha256`.
/// @throws Error kInput if one is missing, no UTF-8 or without a word, kUnsupported for what is no text, kUsage for a
/// folder.
std::string read_haystack(std::span<const std::string> paths, std::vector<std::string>& sha256);

}  // namespace kvs
