// SPDX-License-Identifier: Apache-2.0
// Prints the differences between two files of results as one line of JSON on stdout. The files are captures, or arrays,
// of the same run on two devices. gpu_programs.py holds the bounds.
//
// Usage: gpu_compare A.h5 B.h5        B is the reference
// Captures: headers, documents and tokens must be equal. Each kind of states has `norm`, the largest ‖a − b‖ / ‖b‖ of
// a dataset, and `row`, the largest ‖a − b‖ of one head's token over ‖b‖ of that token or, if larger, the root mean
// square of these, each with its position; the NLL has the largest difference. Other files: the largest |a − b| / |b|
// of a value.
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/hdf5/capture_file.h"
#include "io/hdf5/capture_layout.h"
#include "io/json.h"
#include "tests/bench/program.h"

namespace {

using kvs::CaptureHeader, kvs::CaptureReader, kvs::Error, kvs::ErrorCode, kvs::Json;

struct Worst {
  double value = 0;
  std::string where;
  void take(double other, const std::string& place) {
    if (!std::isfinite(other)) throw Error(ErrorCode::kData, place, "the difference is not finite");
    if (other <= value) return;
    value = other;
    where = place;
  }
  Json json() const { return {{"value", value}, {"at", where}}; }
};

struct StateWorst {
  Worst norm, row;
  std::size_t datasets = 0;
};

/// a, b: [row, columns].
void compare_states(const std::vector<float>& a, const std::vector<float>& b, const CaptureHeader& header,
                    std::int32_t layer, const std::string& place, StateWorst& worst) {
  const std::size_t columns = header.head_dim.of(static_cast<std::size_t>(layer)), rows = b.size() / columns;
  std::vector<double> apart(rows), size(rows);
  double all_apart = 0, all = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      apart[row] += std::pow(double{a[i]} - double{b[i]}, 2);
      size[row] += double{b[i]} * double{b[i]};
    }
    all_apart += apart[row];
    all += size[row];
  }
  if (all == 0) throw Error(ErrorCode::kData, place, "holds only zeros");
  worst.norm.take(std::sqrt(all_apart / all), place);
  const double typical = all / static_cast<double>(rows);
  for (std::size_t row = 0; row < rows; ++row)
    worst.row.take(std::sqrt(apart[row] / std::max(size[row], typical)),
                   place + ", " + kvs::position_text(header, static_cast<std::size_t>(layer), row * columns));
  ++worst.datasets;
}

Json compare_captures(const char* path_a, const char* path_b) {
  const auto a = CaptureReader::open(path_a, {}), b = CaptureReader::open(path_b, {});
  const CaptureHeader& header = b->header();
  if (kvs::header_to_json(a->header()) != kvs::header_to_json(header) || a->documents() != b->documents())
    throw Error(ErrorCode::kData, path_a, std::string("its attributes differ from those of ") + path_b);
  Worst nll;
  Json result{{"documents", b->documents()}};
  kvs::ByState<StateWorst> states;
  for (std::uint64_t document = 0; document < b->documents(); ++document) {
    const std::string place = "document " + std::to_string(document);
    if (a->tokens(document) != b->tokens(document)) throw Error(ErrorCode::kData, path_a, place + ": other tokens");
    const auto nll_a = a->nll(document), nll_b = b->nll(document);
    for (std::size_t i = 0; i < nll_b.size(); ++i)
      nll.take(std::abs(double{nll_a[i]} - double{nll_b[i]}), place + ", token " + std::to_string(i));
    for (const kvs::StateKind kind : header.states) {
      for (const std::int32_t layer : header.layers) {
        const auto shape = header.shape_of(static_cast<std::size_t>(layer), kind);
        std::vector<float> of_a(shape[0] * shape[1] * shape[2]), of_b(of_a.size());
        (void)a->read_states(document, layer, kind, {of_a, shape});
        (void)b->read_states(document, layer, kind, {of_b, shape});
        compare_states(of_a, of_b, header, layer, place + ", layer " + std::to_string(layer), states[kind]);
      }
    }
  }
  result["nll"] = nll.json();
  for (const kvs::StateKind kind : header.states)
    result["states"][std::string(kvs::name_of(kind))] = {
        {"norm", states[kind].norm.json()}, {"row", states[kind].row.json()}, {"datasets", states[kind].datasets}};
  return result;
}

using Arrays = std::vector<std::pair<std::string, std::vector<double>>>;

herr_t collect(hid_t file, const char* name, const H5L_info_t*, void* arrays) {
  const hid_t object = H5Oopen(file, name, H5P_DEFAULT);
  herr_t status = object < 0 ? -1 : 0;
  if (object >= 0 && H5Iget_type(object) == H5I_DATASET) {
    const hid_t space = H5Dget_space(object);
    std::vector<double> values(static_cast<std::size_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space))));
    status = H5Dread(object, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    static_cast<Arrays*>(arrays)->emplace_back(name, std::move(values));
  }
  if (object >= 0) H5Oclose(object);
  return status;
}

Arrays read_arrays(const char* path) {
  Arrays arrays;
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0 || H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, collect, &arrays) < 0)
    throw Error(ErrorCode::kInput, path, "cannot be read");
  H5Fclose(file);
  if (arrays.empty()) throw Error(ErrorCode::kData, path, "holds no array");
  return arrays;
}

Json compare_arrays(const char* path_a, const char* path_b) {
  const Arrays a = read_arrays(path_a), b = read_arrays(path_b);
  if (a.size() != b.size()) throw Error(ErrorCode::kData, path_a, "holds another number of arrays");
  Worst worst;
  std::size_t values = 0;
  for (std::size_t n = 0; n < b.size(); ++n) {
    const auto& [name, reference] = b[n];
    if (a[n].first != name || a[n].second.size() != reference.size())
      throw Error(ErrorCode::kData, path_a, name + ": is missing or of another size");
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const double apart = std::abs(a[n].second[i] - reference[i]);
      worst.take(apart == 0 ? 0 : apart / std::abs(reference[i]), name + ", value " + std::to_string(i));
    }
    values += reference.size();
  }
  return {{"arrays", b.size()}, {"values", values}, {"relative", worst.json()}};
}

bool is_capture(const char* path) {
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) throw Error(ErrorCode::kInput, path, "is no readable HDF5 file");
  const bool found = H5Aexists(file, "model_sha256") > 0;
  H5Fclose(file);
  return found;
}

int compare_files(int, char** argv) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // an error is reported in one line
  const Json result = is_capture(argv[2]) ? compare_captures(argv[1], argv[2]) : compare_arrays(argv[1], argv[2]);
  std::printf("%s\n", kvs::dump_json(result, -1).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 2, "gpu_compare A.h5 B.h5", compare_files);
}
