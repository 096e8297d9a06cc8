#include <array>

#include "cli/kvcalibrate/commands.h"
#include "run/program.h"

int main(int argc, char** argv) {
  constexpr std::array kCommands{
      kvs::Subcommand{"faedkv", "ablate spectral chunks of every layer and keep those that matter", kvs::run_faedkv,
                      true},
      kvs::Subcommand{"elitekv", "search elite RoPE chunks and factorise keys and values", kvs::run_elitekv, true},
      kvs::Subcommand{"freqkv", "choose FreqKV's settings for a byte budget", kvs::run_freqkv, true},
      kvs::Subcommand{"lagkv", "choose LagKV's settings for a byte budget", kvs::run_lagkv, true},
      kvs::Subcommand{"transform", "a transform coder for the whole cache under one budget of bytes",
                      kvs::run_transform},
      kvs::Subcommand{"store", "measure the scales of an fp8 cache", kvs::run_store},
      kvs::Subcommand{"eval", "perplexity and cache size of a method or a config", kvs::run_eval, true},
      kvs::Subcommand{"compare", "methods and storage types at equal bytes: what each loses, and the best",
                      kvs::run_compare, true},
      kvs::Subcommand{"generate", "continue a prompt with a cache at work", kvs::run_generate},
      kvs::Subcommand{"latency", "prefill and decoding times by length, caches taking turns", kvs::run_latency},
      kvs::Subcommand{"cost", "what the methods cost by their papers' arithmetic, for any geometry", kvs::run_cost},
      kvs::Subcommand{"export", "write a config in another program's format", kvs::run_export},
      kvs::Subcommand{"validate", "check a config against the schema and its files", kvs::run_validate},
  };
  return kvs::run_program("kvcalibrate", "calibrate, compare and export compressed KV caches", kCommands, argc, argv);
}
