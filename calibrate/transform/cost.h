#pragma once

#include <cstddef>

#include "calibrate/transform/moments.h"

namespace kvs {

/// What a calibration of the transform coder takes, for what commands announce before they run.
struct TransformText {
  std::size_t documents = 0, tokens = 0;  // of a document
  bool measured = true;                   // costs are measured; false: they are given
};

/// Passes over a document: the sums take the time of three, measuring costs reruns half of the layers for the keys and
/// the values of each.
double transform_passes(const TransformGeometry& geometry, const TransformText& text);
/// Values that are coded: rows of the text for each iteration of fitting books, whole documents where costs are
/// measured.
double transform_coded_values(const TransformGeometry& geometry, const TransformText& text);

/// Bytes at its peak beside the model and a pass over a document: sums, bases in double, the layers' maps on the host
/// and at work, and where costs are measured the streams that LayerLosses keeps.
double transform_memory(const TransformGeometry& geometry, const TransformText& text, std::size_t d_model);

}  // namespace kvs
