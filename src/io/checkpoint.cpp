// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint.h"

#include <cstring>

#include "core/error.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/output_tensor.h"
#include "io/staged_output.h"

namespace kvs::inline io {
namespace {

constexpr std::uint64_t kMaximumHeader = 1 << 20;
constexpr std::string_view kMagic = "KVSSUMS1";

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Layout: magic, header length, header JSON {identity, documents, extra, lengths}, the doubles of the sums, and the
/// CRC-32C of everything before it.
std::optional<std::pair<Json, Checkpoint::State>> read_state(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  std::uint64_t length = 0;
  std::uint32_t crc = 0;
  if (bytes.size() < kMagic.size() + sizeof length + sizeof crc || !bytes.starts_with(kMagic)) return std::nullopt;
  std::memcpy(&length, bytes.data() + kMagic.size(), sizeof length);
  std::memcpy(&crc, bytes.data() + bytes.size() - sizeof crc, sizeof crc);
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof crc);
  std::string_view rest = body.substr(kMagic.size() + sizeof length);
  if (crc32c(std::as_bytes(std::span(body))) != crc || length > kMaximumHeader || length > rest.size())
    return std::nullopt;
  const Json header = parse_json(rest.substr(0, length), path.string());
  rest.remove_prefix(length);
  Checkpoint::State state{header.at("documents").get<std::uint64_t>(), {}, header.at("extra")};
  for (const auto& count : header.at("lengths")) {
    const auto doubles = count.get<std::uint64_t>();
    if (doubles > rest.size() / sizeof(double)) return std::nullopt;
    auto& sum = state.sums.emplace_back(doubles);
    std::memcpy(sum.data(), rest.data(), doubles * sizeof(double));
    rest.remove_prefix(doubles * sizeof(double));
  }
  return std::pair{header.at("identity"), std::move(state)};
}

}  // namespace

std::string identity_differences(const Json& stored, const Json& now) {
  std::string differences;
  const auto compare = [&](const std::string& name, const Json& before, const Json& after) {
    if (before == after) return;
    differences += (differences.empty() ? "" : "; ") + name + ": stored " + before.dump() + ", now " + after.dump();
  };
  const auto member = [](const Json& object, const std::string& name) {
    return object.is_object() && object.contains(name) ? object.at(name) : Json();
  };
  const auto walk = [&](const auto& self, const std::string& prefix, const Json& before, const Json& after) -> void {
    if (!before.is_object() || !after.is_object()) return compare(prefix, before, after);
    Json names = before;
    names.update(after);
    for (const auto& [name, value] : names.items())
      self(self, prefix.empty() ? name : prefix + "." + name, member(before, name), member(after, name));
  };
  walk(walk, "", stored, now);
  return differences;
}

Checkpoint::Checkpoint(const std::filesystem::path& output, Json identity)
    : files_{resolve_output(output) += ".checkpoint.0", resolve_output(output) += ".checkpoint.1"},
      identity_(std::move(identity)) {}

std::optional<Checkpoint::State> Checkpoint::load(bool resume, bool force) const {
  if (force) remove();
  std::optional<State> newest;
  for (const auto& path : files_) {
    auto found = read_state(path);
    if (!found) continue;
    if (!resume) refuse_unfinished(path);
    if (const std::string differences = identity_differences(found->first, identity_); !differences.empty())
      throw Error(ErrorCode::kConflict, path.string(), "belongs to another run: " + differences);
    if (!newest || found->second.documents >= newest->documents) newest = std::move(found->second);
  }
  return newest;
}

bool Checkpoint::due() const { return std::chrono::steady_clock::now() - saved_ >= 20 * cost_; }

void Checkpoint::save(std::uint64_t documents, std::span<const std::span<const double>> sums, const Json& extra) {
  const auto start = std::chrono::steady_clock::now();
  Json lengths = Json::array();
  for (const auto sum : sums) lengths.push_back(sum.size());
  const std::string header =
      dump_json({{"identity", identity_}, {"documents", documents}, {"extra", extra}, {"lengths", lengths}}, -1);
  StagedOutput staged(files_[next_], StagedOutput::Kind::kFile);
  OutputFile file(staged.path());
  const std::uint64_t length = header.size();
  std::uint32_t crc = 0;
  const auto write = [&](std::span<const std::byte> bytes) {
    crc = crc32c(bytes, crc);
    file.write(bytes);
  };
  write(std::as_bytes(std::span(kMagic)));
  write(std::as_bytes(std::span(bytes_of(length))));
  write(std::as_bytes(std::span(header)));
  for (const auto sum : sums) write(std::as_bytes(sum));
  file.write(bytes_of(crc));
  staged.commit(true);
  next_ = 1 - next_;
  saved_ = std::chrono::steady_clock::now();
  cost_ = saved_ - start;
}

void Checkpoint::remove() const {
  for (const auto& path : files_) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
}

}  // namespace kvs::inline io
