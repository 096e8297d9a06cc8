// SPDX-License-Identifier: Apache-2.0
#include "io/gguf.h"

#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/gguf_parse.h"
#include "io/gguf_split.h"
#include "io/mapped_tensors.h"

namespace kvs::inline io {
namespace {

/// One file, or the parts of a split file. The first part holds the metadata.
class MappedGguf final : public GgufFile {
 public:
  explicit MappedGguf(const std::filesystem::path& path) {
    MappedFile given(path);
    GgufContents contents = parse_gguf(given.bytes(), path.native());
    const auto split = gguf_split_of(contents.metadata, path.native());
    if (!split) {
      add(std::move(given), std::move(contents));
    } else {
      for (std::uint64_t number = 0; number < split->count; ++number) {
        if (number == split->number) {
          add(std::move(given), std::move(contents));  // NOLINT(bugprone-use-after-move): in one round only
        } else {
          add_part(gguf_part_path(path, *split, number), *split, number);
        }
      }
      check_count(*split);
    }
    mapped_.finish();
  }

  std::span<const StoredTensor> tensors() const noexcept override { return mapped_.tensors(); }
  const std::filesystem::path& file_of(const StoredTensor& tensor) const noexcept override {
    return mapped_.file_of(tensor);
  }
  void check_unchanged() const override { mapped_.check_unchanged(); }
  void release(std::span<const std::byte> bytes) const noexcept override { mapped_.release(bytes); }
  const std::filesystem::path& path() const noexcept override { return mapped_.files().front().path(); }
  std::span<const std::string> warnings() const noexcept override { return warnings_; }
  const GgufMetadata& metadata() const noexcept override { return metadata_; }
  const GgufEncoded& encoded() const noexcept override { return encoded_; }

 private:
  void add(MappedFile file, GgufContents contents) {
    if (mapped_.files().empty()) {
      metadata_ = std::move(contents.metadata);
      encoded_ = std::move(contents.encoded);
    }
    tensors_found_ += contents.tensors.size();
    if (!contents.warning.empty()) warnings_.push_back(std::move(contents.warning));
    mapped_.add(std::move(file), std::move(contents.tensors));
  }

  void add_part(const std::filesystem::path& path, const GgufSplit& given, std::uint64_t number) {
    const std::string part = "part " + std::to_string(number + 1) + " of " + std::to_string(given.count);
    if (!is_there(path))
      throw Error(ErrorCode::kUnsupported, path.native(),  // the file itself is valid, but it is not a whole model
                  "found nothing, expected " + part + " of the split GGUF file");
    MappedFile file(path);
    GgufContents contents = parse_gguf(file.bytes(), path.native());
    const auto split = gguf_split_of(contents.metadata, path.native());
    const auto text = [](const GgufSplit& of) {
      return "part " + std::to_string(of.number + 1) + " of " + std::to_string(of.count) + " with " +
             std::to_string(of.tensors) + " tensors in all";
    };
    if (!split || split->number != number || split->count != given.count || split->tensors != given.tensors)
      throw Error(ErrorCode::kInput, path.native(),
                  "found " + (split ? text(*split) : "a whole file") + ", expected " +
                      text({number, given.count, given.tensors}) + ", as the other parts say");
    for (const auto& [key, value] : contents.metadata) {
      const auto first = metadata_.find(key);
      if (!key.starts_with("split.") && first != metadata_.end() && first->second != value)
        throw Error(ErrorCode::kInput, path.native() + ": key \"" + printable(key, 80) + '"',
                    "found another value than in the first part, expected parts of one model");
    }
    add(std::move(file), std::move(contents));
  }

  void check_count(const GgufSplit& split) const {
    if (tensors_found_ != split.tensors)
      throw Error(ErrorCode::kInput, path().native(),
                  "found " + std::to_string(tensors_found_) + " tensors in the " + std::to_string(split.count) +
                      " parts, expected " + std::to_string(split.tensors) + " (split.tensors.count)");
  }

  MappedTensors mapped_;
  GgufMetadata metadata_;
  GgufEncoded encoded_;
  std::vector<std::string> warnings_;
  std::size_t tensors_found_ = 0;
};

std::string describe(const GgufValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) return "\"" + printable(*text, 80) + '"';
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return "the real number " + std::to_string(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return "an array";
}

[[noreturn]] void fail(const GgufFile& file, std::string_view key, std::string_view found, std::string_view expected) {
  throw Error(ErrorCode::kInput, file.path().native() + ": key \"" + std::string(key) + '"',
              "found " + std::string(found) + ", expected " + std::string(expected));
}

const GgufValue& value_of(const GgufFile& file, std::string_view key, std::string_view expected) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) fail(file, key, "nothing", expected);
  return found->second;
}

}  // namespace

std::unique_ptr<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  return std::make_unique<MappedGguf>(path);
}

template <class T>
const T& GgufFile::get(std::string_view key, std::string_view expected) const {
  const GgufValue& value = value_of(*this, key, expected);
  const T* typed = std::get_if<T>(&value);
  if (typed == nullptr) fail(*this, key, describe(value), expected);
  return *typed;
}

std::uint64_t GgufFile::get_unsigned(std::string_view key, std::uint64_t most) const {
  const std::string expected = "an integer from 0 to " + std::to_string(most);
  const GgufValue& value = value_of(*this, key, expected);
  // Some writers store a count as a signed integer, others as an unsigned one.
  if (const auto* number = std::get_if<std::int64_t>(&value);
      number != nullptr && *number >= 0 && std::cmp_less_equal(*number, most))
    return static_cast<std::uint64_t>(*number);
  const auto* number = std::get_if<std::uint64_t>(&value);
  if (number == nullptr || *number > most) fail(*this, key, describe(value), expected);
  return *number;
}

double GgufFile::get_real(std::string_view key) const {
  const double value = get<double>(key, "a real number");
  if (!std::isfinite(value)) fail(*this, key, describe(value), "a finite number");
  return value;
}

bool GgufFile::get_boolean(std::string_view key) const { return get<bool>(key, "a boolean"); }
std::string_view GgufFile::get_string(std::string_view key) const { return get<std::string_view>(key, "a string"); }
const GgufArray& GgufFile::get_array(std::string_view key) const { return get<GgufArray>(key, "an array"); }
bool GgufFile::has(std::string_view key) const noexcept { return metadata().contains(key); }

}  // namespace kvs::inline io
