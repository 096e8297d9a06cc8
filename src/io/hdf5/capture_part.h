// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/descriptor.h"
#include "io/hdf5/capture_layout.h"

namespace kvs::inline io {

/// Writes documents into a file that is laid out: by pwrite. Checks the data while writing them.
class CaptureFilePart final : public CapturePart {
 public:
  /// @param output  the final path of the capture, for messages
  CaptureFilePart(std::filesystem::path output, const CaptureHeader& header, CaptureLayout layout)
      : output_(std::move(output)), header_(header), layout_(std::move(layout)) {}

  /// @param path  the file, laid out with `offsets` [document · dataset]
  void open(const std::filesystem::path& path, std::vector<std::uint64_t> offsets);
  void close() noexcept { file_.reset(); }
  int descriptor() const noexcept { return file_->get(); }
  const CaptureLayout& layout() const noexcept { return layout_; }
  const CaptureHeader& header() const noexcept { return header_; }
  /// Writes a dataset at its place in the file.
  void write(std::uint64_t document, std::size_t dataset, std::span<const std::byte> bytes) const;
  void sync() const;
  /// "OUT: /doc/00000/DATASET".
  std::string place(std::uint64_t document, std::size_t dataset) const {
    return output_.native() + ": " + document_group(document) + "/" + layout_.datasets[dataset].name;
  }

  std::unique_ptr<CaptureDocument> begin_document(std::uint64_t document,
                                                  std::span<const std::int32_t> tokens) override;

 private:
  std::filesystem::path output_, path_;
  CaptureHeader header_;
  CaptureLayout layout_;
  std::vector<std::uint64_t> offsets_;
  std::optional<Descriptor> file_;
};

}  // namespace kvs::inline io
