#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/descriptor.h"
#include "io/hdf5/capture_layout.h"

namespace kvs::inline io {

/// Writes documents into a file that is laid out: by pwrite, each dataset once. Checks the data while writing them.
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
  /// "OUT: /doc/00000/DATASET".
  std::string place(std::uint64_t document, std::size_t dataset) const {
    return output_.native() + ": " + document_group(document) + "/" + layout_.datasets[dataset].name;
  }

  void begin_document(std::uint64_t document, std::span<const std::int32_t> tokens) override;
  void write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) override;
  void write_nll(std::span<const float> nll) override;
  Json store_document() override;

 private:
  void write_dataset(std::size_t dataset, std::span<const std::byte> bytes);

  std::filesystem::path output_, path_;
  CaptureHeader header_;
  CaptureLayout layout_;
  std::vector<std::uint64_t> offsets_;
  std::optional<Descriptor> file_;
  std::uint64_t document_ = 0;            // the document being written
  std::vector<std::uint32_t> checksums_;  // [dataset] of that document
  std::vector<std::uint8_t> written_;     // [dataset], bytes that threads set; empty between documents
};

}  // namespace kvs::inline io
