#include <array>

#include "cli/kvspectrum/commands.h"
#include "run/program.h"

int main(int argc, char** argv) {
  constexpr std::array kCommands{
      kvs::Subcommand{"info", "what a model is, what its cache takes, and which methods apply to it", kvs::run_info},
      kvs::Subcommand{"capture", "run texts through a model and store its KV states (HDF5)", kvs::run_capture, true},
      kvs::Subcommand{"spectrum", "power spectra of keys and values along tokens, with figures", kvs::run_spectrum,
                      true},
      kvs::Subcommand{"perturb", "what synonyms change in the low and the high frequencies of keys and values",
                      kvs::run_perturb},
      kvs::Subcommand{"retain", "perplexity against the band of frequencies that keys and values keep",
                      kvs::run_retain},
      kvs::Subcommand{"scores", "LagKV's token scores and what it keeps, by layer and head", kvs::run_scores},
      kvs::Subcommand{"report", "one page about a model from the results of both programs", kvs::run_report},
      kvs::Subcommand{"merge", "one capture of the parts that capture --parts has written", kvs::run_merge},
      kvs::Subcommand{"verify", "check every byte of a capture", kvs::run_verify},
  };
  return kvs::run_program("kvspectrum", "capture, analyse and plot the KV cache of a language model", kCommands, argc,
                          argv);
}
