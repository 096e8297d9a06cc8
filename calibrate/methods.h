#pragma once

#ifndef KVS_EXTRA_METHODS
#define KVS_EXTRA_METHODS(PLAIN)  // of a test build (tests/extra_method)
#endif

/// Every method, in the order in which it is listed: the only list. PLAIN(Name) defines kNameMethod, CALIBRATED(Name)
/// a Calibration kNameCalibration beside it (calibrate/calibration.h).
#define KVS_METHODS(PLAIN, CALIBRATED) \
  CALIBRATED(Full)                     \
  PLAIN(Streaming)                     \
  PLAIN(Dropping)                      \
  CALIBRATED(Freqkv)                   \
  CALIBRATED(Lagkv)                    \
  PLAIN(H2o)                           \
  PLAIN(Snapkv)                        \
  PLAIN(L2norm)                        \
  CALIBRATED(Faedkv)                   \
  PLAIN(Kivi)                          \
  PLAIN(Gqa)                           \
  CALIBRATED(Elitekv)                  \
  CALIBRATED(Transform)                \
  KVS_EXTRA_METHODS(PLAIN)
