#pragma once

#include "export/exporter.h"

namespace kvs {

/// A preset of llama-server (--models-preset): the model's file and the types of its cache. The flags are in the notes.
Json write_llama_cpp(const ExportJob& job);

}  // namespace kvs
