#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/markup.h"

namespace kvs {

/// A cell's words, and the number it is sorted by if it is one.
struct Cell {
  // A row is a list of words and of pairs of words and number.
  Cell(std::string shown) : words(std::move(shown)) {}  // NOLINT(google-explicit-constructor)
  Cell(const char* shown) : words(shown) {}             // NOLINT(google-explicit-constructor)
  Cell(std::string shown, double value) : words(std::move(shown)), number(value) {}
  /// A value that is not there: a dash, last in any order.
  static Cell missing();
  bool is_missing() const { return !number && words == missing().words; }

  std::string words;
  std::optional<double> number;
};

/// An interval of changes, sorted by its lower end.
Cell interval_cell(const std::optional<std::pair<double, double>>& interval);

/// A cache's share of the full cache's bytes, such as "12.4 %", and the bytes that all sequences share beside it.
Cell bytes_cell(double share, double shared_bytes);

/// A table with a caption; the first column names its rows. Its headers sort it where there are rows to sort.
class Table {
 public:
  struct Column {
    std::string name;
    bool numeric = true;
    std::string hint = "";  // what the name stands for
  };
  Table(std::string caption, std::vector<Column> columns);

  /// @throws Error kInput unless there is a cell for every column: lists of a file may differ in length.
  /// @param style  of the row: "front-row", "stopped" or none
  void row(const std::vector<Cell>& cells, const std::string& style = "");
  bool empty() const noexcept { return rows_.empty(); }
  /// Columns in which every cell is missing are left out.
  Markup markup() const;

 private:
  std::string caption_;
  std::vector<Column> columns_;
  struct Row {
    std::vector<Cell> cells;
    std::string style;
  };
  std::vector<bool> columns_with_values() const;
  Markup heads(const std::vector<bool>& shown) const;
  Markup body(const std::vector<bool>& shown) const;
  std::vector<Row> rows_;
};

}  // namespace kvs
