// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include "kernels/cpu/products.h"

namespace kvs::cpu {

OneThreadEach::OneThreadEach() noexcept : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThreadEach::~OneThreadEach() { omp_set_num_threads(before_); }

}  // namespace kvs::cpu
