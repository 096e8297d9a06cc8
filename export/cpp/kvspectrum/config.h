#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// Configs of kvspectrum for engines in C++:
///   find_package(kvspectrum REQUIRED)
///   target_link_libraries(engine PRIVATE kvspectrum::config)
namespace kvspectrum {

/// One line: the file, the field, what was found and what was expected.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Geometry {
  std::string name, architecture;
  std::string sha256;  // of the weights that the config was made with
  std::size_t layers = 0, query_heads = 0, kv_heads = 0, head_dim = 0;
};

/// A pair of factors of EliteKV, up · down, as tensors of files().front(). Rows of up: for each KV head its channels
/// that are not rotated, ascending, then all of the values.
struct Factor {
  std::string up, down;  // names: [rows, rank], [rank, d_model]
  std::size_t rows = 0, rank = 0;
};

/// A calibrated config. Parameters have the names, the units and the standards of docs/caches.md, those of `transform`
/// the ones of docs/configs.md; what the config does not say has its standard.
class Config {
 public:
  /// Reads a file and checks it as `kvcalibrate validate` does: the schema, lists against each other, the digests and
  /// the tensors of the files beside it. @throws Error
  static Config read(const std::filesystem::path& path);

  const std::string& method() const noexcept;
  const Geometry& model() const noexcept;
  /// The layers that the method is for, ascending; the others keep everything.
  const std::vector<std::size_t>& layers() const noexcept;
  const std::vector<std::filesystem::path>& files() const noexcept;

  /// A parameter of a layer. @throws Error if the method has none of this name and type, or is not for the layer.
  std::size_t count(const std::string& name, std::size_t layer) const;
  double real(const std::string& name, std::size_t layer) const;
  std::string word(const std::string& name, std::size_t layer) const;
  std::vector<std::size_t> indices(const std::string& name, std::size_t layer) const;
  std::vector<double> values(const std::string& name, std::size_t layer) const;  // [kv_head]

  /// Of `elitekv` alone: [head] the chunks (c, c + rotary_dim / 2) that stay rotated, of KV heads or of query heads.
  std::vector<std::vector<std::size_t>> elite_chunks(std::size_t layer) const;
  /// The layer's factors: one pair, that of the keys and that of the values, or none.
  std::vector<Factor> factors(std::size_t layer) const;

 private:
  struct Content;
  explicit Config(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;
};

}  // namespace kvspectrum
