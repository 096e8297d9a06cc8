#include "tasks/task_report.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "eval/paired_difference.h"

namespace kvs {
namespace {

/// Sums over answers.
struct AnswerSum {
  std::size_t answers = 0, generated = 0, tokens = 0;
  Scores scores;
  double first_right = 0, log_likelihood = 0, bytes_ratio = 0;

  void add(const Answer& answer) {
    ++answers;
    tokens += answer.tokens;
    generated += answer.first_token >= 0 ? 1 : 0;
    scores.accuracy += answer.scores.accuracy;
    scores.recall += answer.scores.recall;
    scores.partial += answer.scores.partial;
    scores.f1 += answer.scores.f1;
    first_right += answer.first_right ? 1 : 0;
    log_likelihood += answer.log_likelihood;
    bytes_ratio += answer.bytes_ratio;
  }
  double mean(double sum) const { return sum / static_cast<double>(answers); }
  double per_token() const { return log_likelihood / static_cast<double>(tokens); }

  Json json() const {
    Json json{{"accuracy", mean(scores.accuracy)}};
    if (generated > 0) {
      json["recall"] = mean(scores.recall);
      json["partial"] = mean(scores.partial);
      json["f1"] = mean(scores.f1);
      json["first_token"] = first_right / static_cast<double>(generated);
    }
    json["log_likelihood"] = per_token();
    json["bytes_ratio"] = mean(bytes_ratio);
    return json;
  }
};

/// Mean over questions of an answer's log-likelihood per token with this cache, less that with the full one.
Json difference_json(std::span<const TaskResult> results) {
  std::vector<double> differences;
  for (const TaskResult& result : results)
    differences.push_back((result.answer.log_likelihood - result.full->log_likelihood) /
                          static_cast<double>(result.answer.tokens));
  const auto [mean, error] = paired_mean(differences);
  Json json{{"log_likelihood", mean}};
  if (differences.size() < 2) return json;
  const double half = half_width(differences.size(), 0.95) * error;
  json["interval"] = {mean - half, mean + half};
  return json;
}

/// The least and the most.
Json prompt_tokens_json(std::span<const TaskResult> results) {
  const auto [least, most] = std::ranges::minmax(results, {}, &TaskResult::prompt_tokens);
  return {least.prompt_tokens, most.prompt_tokens};
}

std::string prompt_tokens(const Json& range) {
  return range[0] == range[1] ? range[0].dump() : range[0].dump() + " to " + range[1].dump();
}

std::string percent(const Json& share) {
  std::ostringstream out;
  out.precision(3);
  out << 100 * share.get<double>() << " %";
  return out.str();
}

std::string likelihood(const Json& of) {
  std::ostringstream out;
  out.precision(4);
  out << of.get<double>();
  return out.str();
}

}  // namespace

Json task_json(std::span<const TaskResult> results) {
  AnswerSum sum, full;
  double as_full = 0;
  for (const TaskResult& result : results) {
    sum.add(result.answer);
    if (!result.full) continue;
    full.add(*result.full);
    as_full += result.answer.first_token == result.full->first_token ? 1 : 0;
  }
  Json json{{"questions", results.size()}, {"prompt_tokens", prompt_tokens_json(results)}};
  json.update(sum.json());
  if (full.answers > 0) {
    if (sum.generated > 0) json["first_token_as_full"] = sum.mean(as_full);
    json["full"] = full.json();
    json["difference"] = difference_json(results);
  }
  return json;
}

bool is_failed(const Json& report) {
  return (report.contains("full") ? report.at("full") : report).at("accuracy").get<double>() < 0.5;
}

std::string task_summary(const Json& report) {
  std::string text = percent(report.at("accuracy")) + " of " + report.at("questions").dump() + " questions of " +
                     prompt_tokens(report.at("prompt_tokens")) + " tokens right";
  if (report.contains("recall"))
    text += ", " + percent(report.at("recall")) + " of the answers, partial " + percent(report.at("partial")) +
            ", first token " + percent(report.at("first_token"));
  text += "\n  log-likelihood " + likelihood(report.at("log_likelihood")) + " a token of the answer, cache " +
          percent(report.at("bytes_ratio")) + " of the full one\n";
  if (!report.contains("full")) return text;
  const Json &full = report.at("full"), &difference = report.at("difference");
  text += "  the full cache: " + percent(full.at("accuracy")) + " right, log-likelihood " +
          likelihood(full.at("log_likelihood")) + "; difference " + likelihood(difference.at("log_likelihood"));
  if (difference.contains("interval"))
    text +=
        " (95 % " + likelihood(difference.at("interval")[0]) + " to " + likelihood(difference.at("interval")[1]) + ")";
  if (report.contains("first_token_as_full"))
    text += "; the same first token in " + percent(report.at("first_token_as_full"));
  return text + '\n';
}

RetrievalMap retrieval_map(std::span<const TaskResult> results) {
  std::set<std::size_t> lengths;
  std::set<double> depths;
  for (const TaskResult& result : results) {
    if (!result.depth) return {};
    lengths.insert(result.length);
    depths.insert(*result.depth);
  }
  RetrievalMap map{
      .heading = {}, .lengths = {lengths.begin(), lengths.end()}, .depths = {depths.begin(), depths.end()}, .maps = {}};
  RetrievalMap::Values score{"score", "share found", true, {}},
      likelihood{"likelihood", "log-likelihood a token", false, {}};
  for (const double depth : depths) {
    score.values.emplace_back();
    likelihood.values.emplace_back();
    for (const std::size_t length : lengths) {
      AnswerSum cell;
      for (const TaskResult& result : results)
        if (result.length == length && result.depth == depth) cell.add(result.answer);
      score.values.back().push_back(cell.mean(cell.scores.partial));
      likelihood.values.back().push_back(cell.per_token());
    }
  }
  map.maps = {std::move(score), std::move(likelihood)};
  return map;
}

}  // namespace kvs
