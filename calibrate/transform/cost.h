// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "calibrate/transform/moments.h"

namespace kvs::inline calibrate {

/// The text of a calibration of the transform coder, for the estimate that commands print before they run.
struct TransformText {
  std::size_t documents = 0, tokens = 0;  // of a document
  bool measured = true;                   // true: costs are measured; false: they are given
};

/// Returns the number of passes over a document. The sums take the time of three. Measuring costs reruns half of the
/// layers for the keys and the values of each layer.
double transform_passes(const TransformGeometry& geometry, const TransformText& text);
/// Returns the number of coded values: rows of the text for each iteration of fitting books, and whole documents if
/// costs are measured.
double transform_coded_values(const TransformGeometry& geometry, const TransformText& text);

/// Returns the peak memory in bytes in addition to the model and a pass over a document: sums, bases in double, the
/// layers' maps on the host and in use, and, if costs are measured, the streams that LayerLosses keeps.
double transform_memory(const TransformGeometry& geometry, const TransformText& text, std::size_t d_model);

}  // namespace kvs::inline calibrate
