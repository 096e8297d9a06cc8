// SPDX-License-Identifier: Apache-2.0
/* Encodes and decodes random keys and values of one layer.
 * Usage: round_trip CONFIG LAYERS KV_HEADS HEAD_DIM LAYER, for a model with equal layers. */
#include <kvspectrum/codec.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTokens = 64 };

static int fail(const char* call) {
  fprintf(stderr, "%s: %s\n", call, kvs_codec_error());
  return 1;
}

/* Returns the root of the mean squared error, relative to that of the values. */
static double error_of(const float* found, const float* expected, size_t count) {
  double error = 0, size = 0;
  for (size_t n = 0; n < count; ++n) {
    error += (found[n] - expected[n]) * (double)(found[n] - expected[n]);
    size += expected[n] * (double)expected[n];
  }
  return sqrt(error / size);
}

static int round_trip(const kvs_codec* codec, uint32_t layer, float* values, size_t count) {
  kvs_codec_layout layout;
  if (kvs_codec_layout_of(codec, layer, &layout) != KVS_CODEC_OK) return fail("kvs_codec_layout_of");
  const size_t row = (size_t)layout.kv_heads * layout.head_dim;
  const kvs_codec_states states = {.k = values,
                                   .v = values + count,
                                   .k_token_stride = row,
                                   .k_head_stride = layout.head_dim,
                                   .v_token_stride = row,
                                   .v_head_stride = layout.head_dim,
                                   .type = KVS_CODEC_F32,
                                   .rotated = 1};
  const kvs_codec_block block = {.layer = layer, .tokens = kTokens};
  size_t bytes = 0;
  if (kvs_codec_bound(codec, &block, &bytes) != KVS_CODEC_OK) return fail("kvs_codec_bound");
  void* const stream = malloc(bytes);
  float* const original = malloc(2 * count * sizeof(float));
  for (size_t n = 0; n < 2 * count; ++n) original[n] = values[n];
  int bad = 0;
  if (kvs_codec_encode(codec, &block, &states, stream, bytes, &bytes) != KVS_CODEC_OK)
    bad = fail("kvs_codec_encode");
  else if (kvs_codec_decode(codec, stream, bytes, 0, kTokens, &states) != KVS_CODEC_OK)
    bad = fail("kvs_codec_decode");
  else
    printf("layer %u: %d tokens in %zu bytes, relative error of keys %.3f, of values %.3f\n", (unsigned)layer, kTokens,
           bytes, error_of(values, original, count), error_of(values + count, original + count, count));
  free(original);
  free(stream);
  return bad;
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: round_trip CONFIG LAYERS KV_HEADS HEAD_DIM LAYER\n");
    return 2;
  }
  const uint32_t layers = (uint32_t)atoi(argv[2]), kv_heads = (uint32_t)atoi(argv[3]),
                 head_dim = (uint32_t)atoi(argv[4]);
  uint32_t *const heads = malloc(layers * sizeof(uint32_t)), *const dims = malloc(layers * sizeof(uint32_t));
  for (uint32_t layer = 0; layer < layers; ++layer) {
    heads[layer] = kv_heads;
    dims[layer] = head_dim;
  }
  const size_t count = (size_t)kTokens * kv_heads * head_dim;
  float* const values = malloc(2 * count * sizeof(float));
  for (size_t n = 0; n < 2 * count; ++n) values[n] = (float)rand() / (float)RAND_MAX - 0.5F;
  const kvs_codec_options options = {.layers = layers, .kv_heads = heads, .head_dim = dims};
  kvs_codec* codec = NULL;
  int bad = 0;
  if (kvs_codec_open(KVS_CODEC_VERSION, argv[1], &options, &codec) != KVS_CODEC_OK)
    bad = fail("kvs_codec_open");
  else
    bad = round_trip(codec, (uint32_t)atoi(argv[5]), values, count);
  kvs_codec_close(codec);
  free(values);
  free(dims);
  free(heads);
  return bad;
}
