#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CalibrationOps::svd against torch.linalg.svd on one matrix in one run: seconds of each and the difference of the values.

Usage: jlrd_bench.py build/cpu/bin/svd_bench [--rows 4096] [--columns 7168] [--rank 2048] [--threads N] [--repeats 1]

The default shape is a LLaMA-2-7B layer. The matrix is Gaussian with singular values that fall off by a factor of about
ten over the leading `rank` in all, as trained weights do. torch.linalg.svd runs in float32 with full_matrices=False.
"""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import torch


def main():
    a = argparse.ArgumentParser()
    a.add_argument("program")
    a.add_argument("--rows", type=int, default=4096)
    a.add_argument("--columns", type=int, default=7168)
    a.add_argument("--rank", type=int, default=2048)
    a.add_argument("--threads", type=int, default=os.cpu_count())
    a.add_argument("--repeats", type=int, default=1)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    fall = 10.0 ** (-torch.arange(o.rows) / (2 * o.rank))
    matrix = torch.randn(o.rows, o.columns) * 0.02 * fall[:, None]

    seconds, ours = float("inf"), float("inf")
    with tempfile.TemporaryDirectory() as folder:
        matrix.numpy().tofile(f"{folder}/matrix.f32")
        command = [o.program, f"{folder}/matrix.f32", str(o.rows), str(o.columns), str(o.rank), f"{folder}/values.f64"]
        for _ in range(o.repeats):  # in turns, so that both see the same machine
            ours = min(ours, float(subprocess.check_output(command, env=os.environ | {"OMP_NUM_THREADS": str(o.threads)})))
            start = time.perf_counter()
            reference = torch.linalg.svd(matrix, full_matrices=False).S
            seconds = min(seconds, time.perf_counter() - start)
        values = np.fromfile(f"{folder}/values.f64")
    deviation = np.abs(values / reference.double().numpy() - 1)[: o.rank].max()
    print(f"{o.rows} x {o.columns}, rank {o.rank}, {o.threads} threads: svd_bench {ours:.2f} s, "
          f"torch.linalg.svd f32 {seconds:.2f} s, ratio {seconds / ours:.2f}, leading values within {deviation:.1e}")
    assert deviation < 1e-5


if __name__ == "__main__":
    main()
