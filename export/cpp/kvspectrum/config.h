// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// Reads configs of kvspectrum in C++ engines:
///   find_package(kvspectrum REQUIRED)
///   target_link_libraries(engine PRIVATE kvspectrum::config)
namespace kvspectrum {

/// An error in one line: the file, the field, the value found and the value expected.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Geometry {
  std::string name, architecture;
  std::string sha256;  // of the weights that the config was made with
  std::size_t layers = 0;
  std::vector<std::size_t> query_heads, kv_heads, head_dim;  // [layer], 0 in a layer without a KV cache of its own
};

/// A pair of factors of EliteKV, up · down, as tensors of files().front(). Rows of up: for each KV head the channels
/// that are not rotated, ascending, then all values.
struct Factor {
  std::string up, down;  // names of tensors [rows, rank] and [rank, d_model]
  std::size_t rows = 0, rank = 0;
};

/// A calibrated config. docs/caches.md has the names, units and defaults of parameters, docs/configs.md those of
/// `transform`. Parameters missing in the config have their defaults.
class Config {
 public:
  /// Reads a file and checks it like `kvcalibrate validate`: the schema, the lengths of lists, and the digests and
  /// tensors of the files next to it. @throws Error
  static Config read(const std::filesystem::path& path);

  const std::string& method() const noexcept;
  const Geometry& model() const noexcept;
  /// Returns the layers that the method applies to, ascending. All other layers keep everything.
  const std::vector<std::size_t>& layers() const noexcept;
  const std::vector<std::filesystem::path>& files() const noexcept;

  /// Return a parameter of a layer. @throws Error if the method has no parameter of this name and type, or does not
  /// apply to the layer
  std::size_t count(const std::string& name, std::size_t layer) const;
  double real(const std::string& name, std::size_t layer) const;
  std::string word(const std::string& name, std::size_t layer) const;
  std::vector<std::size_t> indices(const std::string& name, std::size_t layer) const;
  std::vector<double> values(const std::string& name, std::size_t layer) const;  // [kv_head]

  /// Returns for each KV head or query head the chunks (c, c + rotary_dim / 2) that stay rotated. Only for `elitekv`.
  std::vector<std::vector<std::size_t>> elite_chunks(std::size_t layer) const;
  /// Returns the layer's factors: one joint pair, a pair for keys and a pair for values, or none.
  std::vector<Factor> factors(std::size_t layer) const;

 private:
  struct Content;
  explicit Config(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;
};

}  // namespace kvspectrum
