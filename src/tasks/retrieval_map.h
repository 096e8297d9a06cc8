#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/figure.h"

namespace kvs {

/// How well what is hidden at a depth of a text of some length is found.
struct RetrievalMap {
  std::string heading;
  std::vector<std::size_t> lengths;                        // tokens, ascending
  std::vector<double> depths;                              // 0 … 1, ascending
  std::vector<std::vector<double>> score, log_likelihood;  // [depth][length]; 0 … 1, and a token's
};

/// Two maps of depth × length: the score, and the log-likelihood of a token of the right answer.
FigureImages render_retrieval_map(const RetrievalMap& map);

}  // namespace kvs
