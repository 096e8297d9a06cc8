// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kvs {

/// SentencePiece's ModelProto.SentencePiece.Type, which llama.cpp's enum llama_token_type follows.
enum PieceType : std::int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

}  // namespace kvs
