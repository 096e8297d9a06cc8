// SPDX-License-Identifier: Apache-2.0
#include "eval/continuation.h"

#include <algorithm>
#include <numeric>

#include "caches/sequence_batch.h"
#include "eval/cached_run.h"

namespace kvs::inline eval {
namespace {

/// A prompt that is being continued.
struct OpenSequence {
  Cache cache;
  std::size_t prompt = 0, index = 0;  // tokens of the prompt; its number in the call
  std::size_t positions = 0;          // that rotations use
  Continuation made = {};

  std::size_t next_position() const { return prompt + made.ids.size() - 1; }
};

/// Runs one token of each sequence through the layers: [member, 1, d_model].
ResidualStream step_together(Decoder& decoder, std::span<OpenSequence* const> sequences) {
  const Model& model = decoder.model();
  const std::size_t width = model.config().d_model;
  TokenIds tokens;
  std::vector<BatchSequence> members;
  std::size_t positions = 0;
  members.reserve(sequences.size());
  for (OpenSequence* sequence : sequences) {
    tokens.push_back(sequence->made.ids.back());
    members.push_back({&sequence->cache, sequence->next_position()});
    positions = std::max(positions, sequence->positions);
  }
  ResidualStream pass{.rows = BackendTensor<float, 3>(model.backend(), {tokens.size(), 1, width}),
                      .positions = positions};
  const BackendView<float, 2> rows = pass.rows.view().reshape<2>({tokens.size(), width});
  model.embed(tokens, rows);
  pass.layer_inputs = model.layer_inputs(tokens, rows);
  Cache batch = batch_of(members);
  decoder.advance(pass, model.config().layers(), nullptr, &batch);
  return pass;
}

ResidualStream step_alone(Decoder& decoder, OpenSequence& sequence) {
  ResidualStream pass =
      decoder.embed(std::span(&sequence.made.ids.back(), 1), sequence.next_position(), sequence.positions);
  decoder.advance(pass, decoder.model().config().layers(), nullptr, &sequence.cache);
  return pass;
}

/// Adds the token that the logits of the sequence's last token choose.
void add_choice(OpenSequence& sequence, std::span<const float> logits, std::size_t first,
                const ContinuationPlan& plan) {
  Continuation& made = sequence.made;
  made.ids.push_back(choose_token(logits, plan.choice, {first + sequence.index, made.ids.size()}));
  made.ended = std::ranges::binary_search(plan.end_tokens, made.ids.back());
}

/// Reads a prompt and chooses the first token after it.
void read_prompt(Decoder& decoder, const TokenIds& prompt, OpenSequence& sequence, std::size_t first,
                 const ContinuationPlan& plan) {
  (void)run_cached(decoder, sequence.cache, prompt, {.positions = sequence.positions},
                   [&](const ResidualStream& pass, std::size_t begin) {
                     if (begin + pass.tokens() < prompt.size()) return;
                     const std::size_t last = pass.tokens() - 1;
                     add_choice(sequence, decoder.logits(pass, std::span(&last, 1)), first, plan);
                   });
}

}  // namespace

bool takes_batches(const ModelConfig& model) {
  return model.streams.count <= 1 && std::ranges::none_of(model.layer, [](const LayerConfig& layer) {
           return layer.has_recurrence() || layer.attention.latent.index.chosen > 0 ||
                  layer.attention.temperature.scale != 0;
         });
}

std::vector<Continuation> continue_prompts(Decoder& decoder, std::span<const TokenIds> prompts, std::size_t first,
                                           const std::function<Cache(const TokenIds&)>& make,
                                           const ContinuationPlan& plan) {
  const bool together = takes_batches(decoder.model().config());
  std::vector<OpenSequence> sequences;
  sequences.reserve(prompts.size());
  for (const TokenIds& prompt : prompts) {
    OpenSequence& sequence =
        sequences.emplace_back(OpenSequence{.cache = make(prompt), .prompt = prompt.size(), .index = sequences.size()});
    sequence.positions = sequence.cache.positions(plan.length);
    read_prompt(decoder, prompt, sequence, first, plan);
  }
  while (true) {
    std::vector<OpenSequence*> open;
    for (OpenSequence& sequence : sequences)
      if (!sequence.made.ended && sequence.made.ids.size() < plan.count) open.push_back(&sequence);
    if (open.empty()) break;
    const std::size_t step = together ? open.size() : 1;
    for (std::size_t n = 0; n < open.size(); n += step) {
      const ResidualStream pass = together ? step_together(decoder, open) : step_alone(decoder, *open[n]);
      std::vector<std::size_t> rows(step);
      std::iota(rows.begin(), rows.end(), 0);
      const std::vector<float> logits = decoder.logits(pass, rows);
      const std::size_t vocabulary = logits.size() / step;
      for (std::size_t row = 0; row < step; ++row)
        add_choice(*open[n + row], std::span(logits).subspan(row * vocabulary, vocabulary), first, plan);
    }
  }
  std::vector<Continuation> made;
  made.reserve(sequences.size());
  for (OpenSequence& sequence : sequences) made.push_back(std::move(sequence.made));
  return made;
}

}  // namespace kvs::inline eval
