// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifndef KVS_EXTRA_METHODS
#define KVS_EXTRA_METHODS(PLAIN)  // defined by a test build (tests/extra_method)
#endif

/// The list of methods, in the order of listings. Commands, schema and reports follow from it. PLAIN(Name) declares
/// kNameMethod; CALIBRATED(Name) also declares a Calibration kNameCalibration (calibrate/calibration.h).
#define KVS_METHODS(PLAIN, CALIBRATED) \
  CALIBRATED(Full)                     \
  PLAIN(Streaming)                     \
  PLAIN(Dropping)                      \
  CALIBRATED(Freqkv)                   \
  CALIBRATED(Lagkv)                    \
  PLAIN(H2o)                           \
  PLAIN(Tova)                          \
  CALIBRATED(Triattention)             \
  PLAIN(Snapkv)                        \
  PLAIN(L2norm)                        \
  CALIBRATED(Faedkv)                   \
  PLAIN(Kivi)                          \
  CALIBRATED(Oscar)                    \
  PLAIN(Gqa)                           \
  CALIBRATED(Elitekv)                  \
  CALIBRATED(Transform)                \
  CALIBRATED(Kvtc)                     \
  KVS_EXTRA_METHODS(PLAIN)
