// SPDX-License-Identifier: Apache-2.0
#include "states/capture_split.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/interrupt.h"
#include "io/checkpoint.h"
#include "io/descriptor.h"

namespace kvs::inline states {
namespace {

constexpr char kPart[] = "part", kParts[] = "parts";  // in the identity of a part

std::string five_digits(std::size_t value) {
  const std::string digits = std::to_string(value);
  return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
}

/// Returns true if a run into `out` may write a file of this name: the whole, or a part with any number.
bool is_file_of(std::string_view name, const std::filesystem::path& out) {
  if (name == out.filename().native()) return true;
  const std::string stem = out.stem().native() + "-", extension = out.extension().native();
  if (!name.starts_with(stem) || !name.ends_with(extension)) return false;
  name.remove_prefix(stem.size());
  name.remove_suffix(std::min(name.size(), extension.size()));
  constexpr std::string_view kForm = "00000-of-00000";
  return name.size() == kForm.size() && std::ranges::equal(name, kForm, [](char letter, char form) {
           return form == '0' ? letter >= '0' && letter <= '9' : letter == form;
         });
}

/// One file of a split capture.
struct Part {
  std::filesystem::path path;
  std::unique_ptr<CaptureReader> reader;
  std::uint64_t number = 0, parts = 0;  // number from 1
  Json run = {};                        // identity that all parts share
};

Part open_part(const std::filesystem::path& path) {
  Part part{.path = path, .reader = CaptureReader::open(path, {})};
  part.run = part.reader->identity();
  const JsonCursor identity(part.run, path.native() + ".manifest.json", "/identity");
  if (!part.run.is_object() || !identity.has(kPart))
    throw Error(ErrorCode::kInput, path.native(), "found a whole capture, expected a part written with --parts");
  part.parts = identity.at(kParts).unsigned_integer();
  part.number = identity.at(kPart).unsigned_integer(part.parts);
  for (const char* const own : {kPart, kParts, "capture.documents"}) part.run.erase(own);
  return part;
}

/// Opens all parts, in order.
std::vector<Part> open_parts(std::span<const std::filesystem::path> files) {
  std::vector<Part> parts;
  for (const std::filesystem::path& path : files) parts.push_back(open_part(path));
  std::ranges::stable_sort(parts, {}, &Part::number);
  const Part& first = parts.front();
  for (const Part& part : parts) {
    const bool same_split = part.parts == first.parts;
    if (part.run == first.run && same_split) continue;
    throw Error(ErrorCode::kConflict, part.path.native(),
                "is of another run than " + first.path.native() + ": " +
                    (same_split ? identity_differences(first.run, part.run)
                                : std::to_string(part.parts) + " parts, expected " + std::to_string(first.parts)));
  }
  const auto twice = std::ranges::adjacent_find(parts, {}, &Part::number);
  if (twice != parts.end())
    throw Error(ErrorCode::kInput, twice->path.native(),
                "found part " + std::to_string(twice->number) + " twice, expected it once");
  if (parts.size() != first.parts)
    throw Error(ErrorCode::kInput, first.path.native(),
                "found " + std::to_string(parts.size()) + " of its run's " + std::to_string(first.parts) +
                    " parts, expected all of them");
  return parts;
}

void copy_document(CaptureReader& from, std::uint64_t document, CaptureWriter& to) {
  const CaptureHeader& header = from.header();
  to.begin_document(from.tokens(document));
  for (const std::int32_t layer : header.layers)
    for (const StateKind kind : kStateKinds)
      if (header.states.contains(kind)) to.write_stored(layer, kind, from.read_stored(document, layer, kind));
  to.write_nll(from.nll(document));
  to.commit_document();
}

}  // namespace

std::filesystem::path CaptureSplit::path(const std::filesystem::path& out, std::size_t part) const {
  std::filesystem::path path = out;
  path.replace_filename(out.stem());
  path += "-" + five_digits(part + 1) + "-of-" + five_digits(parts);
  path += out.extension();
  return path;
}

std::vector<std::filesystem::path> CaptureSplit::paths(const std::filesystem::path& out) const {
  std::vector<std::filesystem::path> all;
  for (std::size_t part = 0; part < parts; ++part) all.push_back(path(out, part));
  return all;
}

CaptureHeader CaptureSplit::header(CaptureHeader whole, std::size_t part) const {
  whole.documents = first(part + 1) - first(part);
  return whole;
}

Json CaptureSplit::identity(Json whole, std::size_t part) const {
  whole[kPart] = part + 1;
  whole[kParts] = parts;
  return whole;
}

std::vector<std::filesystem::path> unfinished_other_splits(const std::filesystem::path& out,
                                                           std::span<const std::filesystem::path> files) {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(directory_of(out), ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().native();
    for (const std::string_view ending : {".partial", ".partial.new", ".journal"}) {
      if (!name.ends_with(ending)) continue;
      const std::filesystem::path file = name.substr(0, name.size() - ending.size());
      const auto is_it = [&](const std::filesystem::path& own) { return own.filename() == file; };
      if (is_file_of(file.native(), out) && std::ranges::none_of(files, is_it)) found.push_back(entry->path());
    }
  }
  std::ranges::sort(found);
  return found;
}

CaptureHeader merge_captures(std::span<const std::filesystem::path> files, const std::filesystem::path& output,
                             const CaptureWriter::Options& options,
                             const std::function<void(std::size_t done, std::size_t of)>& progress) {
  const std::vector<Part> parts = open_parts(files);
  CaptureHeader header = parts.front().reader->header();
  header.documents = 0;
  for (const Part& part : parts) header.documents += part.reader->documents();
  const auto writer = CaptureWriter::open(output, header, parts.front().run, options);
  std::uint64_t first = 0;  // first document of the part
  for (const Part& part : parts) {
    const std::uint64_t last = first + part.reader->documents();
    for (std::uint64_t next = writer->next_document(); next < last; next = writer->next_document()) {
      check_interrupt();
      progress(next, header.documents);
      copy_document(*part.reader, next - first, *writer);
    }
    first = last;
  }
  writer->finish();
  return header;
}

}  // namespace kvs::inline states
