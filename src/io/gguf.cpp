#include "io/gguf.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "io/file.h"
#include "io/gguf_parse.h"

namespace kvs {
namespace {

class MappedGguf final : public GgufFile {
 public:
  explicit MappedGguf(const std::filesystem::path& path)
      : file_(path), contents_(parse_gguf(file_.bytes(), path.native())) {}

  std::span<const StoredTensor> tensors() const noexcept override { return contents_.tensors; }
  const std::filesystem::path& file_of(const StoredTensor&) const noexcept override { return file_.path(); }
  void check_unchanged() const override { file_.check_unchanged(); }
  const std::filesystem::path& path() const noexcept override { return file_.path(); }
  const GgufMetadata& metadata() const noexcept override { return contents_.metadata; }

 private:
  MappedFile file_;
  GgufContents contents_;
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
  // Writers differ in whether a count is signed.
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

}  // namespace kvs
