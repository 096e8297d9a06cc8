// SPDX-License-Identifier: Apache-2.0
#include "run/identity.h"

#include <omp.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/digest.h"
#include "kernels/instruction_set.h"
#include "kernels/libraries.h"
#include "model/config_json.h"
#include "run/progress.h"
#include "run/text_input.h"
#include "version.h"

namespace kvs::inline run {
namespace {

Json common_identity(const Options& options, const std::string& model_sha256, const Corpus& corpus) {
  Json identity{{"tool_version", kToolVersion},
                {"options", options.result_options()},
                {"instruction_set", name_of(instruction_set())},
                {"libraries", {{"products", product_library()}, {"functions", function_library()}}},
                {"model_sha256", model_sha256},
                {"text_sha256", corpus.text_sha256},
                {"tokens", digest_of_tokens(corpus)},
                {"documents", corpus.documents.size()}};
  if (!corpus.documents.empty()) identity["bos"] = bos_json(corpus.bos);
  identity.update(digests_of_configs(options));
  return identity;
}

}  // namespace

Json digests_of_configs(const Options& options) {
  Json digests = Json::object();
  const auto add = [&](const std::string& name, const std::vector<std::string>& found) {
    if (!found.empty()) digests[name + "_sha256"] = found.size() == 1 ? Json(found.front()) : Json(found);
  };
  for (const auto& [option, name] :
       {std::pair<std::string, std::string>("config", "config"), {"reuse-sensitivities", "costs"}}) {
    std::vector<std::string> files, models;
    for (const std::string& path : options.list(option)) {
      files.push_back(sha256_of_file(path));
      if (options.flag("other-weights"))
        models.push_back(read_config(path).at("model").at("sha256").get<std::string>());
    }
    add(name, files);
    add(name + "_model", models);
  }
  return digests;
}

void add_decompositions(Json& identity) { identity["libraries"]["decompositions"] = decomposition_library(); }

std::string digest_of_tokens(const Corpus& corpus) {
  Sha256 digest;
  for (const Document& document : corpus.documents) digest.update(std::as_bytes(std::span(document.tokens)));
  return digest.finish();
}

Json run_identity(const Options& options, const ModelSource& model, const Corpus& corpus) {
  Json identity = common_identity(options, model.sha256(), corpus);
  identity["model_config"] = config_json(model.config());
  return identity;
}

Json run_identity(const Options& options, CaptureReader& capture, const Corpus& corpus) {
  Json identity = common_identity(options, capture.header().model_sha256, corpus);
  identity["capture_sha256"] = capture.sha256();
  return identity;
}

void require_agreement(const RunOptions& run, const Json& identity, const Backend& backend) {
  if (run.ranks->alone()) return;
  Json own = identity;
  own["device"] = backend.device();
  own["dtype"] = name_of(backend.compute_type());
  own["threads"] = backend.device() == "cpu" ? omp_get_max_threads() : 0;
  const std::vector<Json> all = run.ranks->gather(own);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != own)
      throw Error(ErrorCode::kConflict, run.ranks->name(rank),
                  "differs from rank 0: " + identity_differences(own, all[rank]));
  const Json& source = identity.contains("capture") ? identity.at("capture") : identity;
  const auto documents = source.at("documents").get<std::size_t>();
  if (documents < run.ranks->size())
    print_note("note: " + std::to_string(run.ranks->size()) + " ranks share fewer documents (" +
                   std::to_string(documents) + "): those that get none wait for the others",
               run.quiet);
}

Provenance provenance(const Options& options, const RunOptions& run, const Corpus& corpus) {
  Provenance record{
      options.command(),          kToolVersion, corpus.text_sha256, corpus.documents.size(), 0, 0, run.seed,
      digests_of_configs(options)};
  if (!corpus.tokenizer_sha256.empty()) record.inputs["tokenizer_sha256"] = corpus.tokenizer_sha256;
  if (!corpus.documents.empty()) record.window = corpus.documents.front().tokens.size();
  for (const Document& document : corpus.documents) record.tokens += document.tokens.size();
  if (!corpus.documents.empty()) record.bos = bos_json(corpus.bos);
  return record;
}

}  // namespace kvs::inline run
