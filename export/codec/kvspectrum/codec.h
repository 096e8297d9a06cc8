// SPDX-License-Identifier: Apache-2.0
#ifndef KVSPECTRUM_CODEC_H
#define KVSPECTRUM_CODEC_H

/* Codes keys and values of a model's KV cache with a config of `kvcalibrate transform`. docs/codec.md has an example
 * and the layout of a stream.
 *
 * A stream holds a block: consecutive tokens of one layer of one sequence, or of a group of layers that are coded
 * together. Streams of a block have the same bytes on
 * every processor with AVX2, for any number of threads.
 *
 * Functions return a kvs_codec_status. After a failure kvs_codec_error() returns one line: where, what was found, what
 * was expected. Outputs of a call that failed are undefined unless a comment defines them.
 *
 * Threads: a kvs_codec does not change. Any number of threads may use one at the same time, until it is closed. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. Another version has other structs or functions. A version may get more functions. */
#define KVS_CODEC_VERSION 1

#if defined(__GNUC__)
#define KVS_CODEC_API __attribute__((visibility("default")))
#else
#define KVS_CODEC_API
#endif

typedef enum kvs_codec_status {
  KVS_CODEC_OK = 0,
  KVS_CODEC_ARGUMENT = 1, /* an argument that the function does not take, or another version */
  KVS_CODEC_CONFIG = 2,   /* a config, or its tensors, that is missing, damaged or of another method */
  KVS_CODEC_MODEL = 3,    /* a config that was made for another model */
  KVS_CODEC_STREAM = 4,   /* a stream that is truncated, damaged, or of another config, layer or version */
  KVS_CODEC_SPACE = 5,    /* less memory for a stream than it needs */
  KVS_CODEC_MEMORY = 6,   /* out of memory */
  KVS_CODEC_INTERNAL = 7  /* a bug in the library */
} kvs_codec_status;

typedef enum kvs_codec_type { KVS_CODEC_F32 = 0, KVS_CODEC_F16 = 1, KVS_CODEC_BF16 = 2 } kvs_codec_type;

/* What is coded as one row: a whole token, or a head's keys and a head's values. */
typedef enum kvs_codec_rows { KVS_CODEC_ROWS_LAYER = 0, KVS_CODEC_ROWS_HEAD = 1 } kvs_codec_rows;

/* How rows are coded: with equally many bytes each, or in entropy-coded blocks of tokens. */
typedef enum kvs_codec_form { KVS_CODEC_FORM_RANDOM_ACCESS = 0, KVS_CODEC_FORM_STORAGE = 1 } kvs_codec_form;

/* An open config. */
typedef struct kvs_codec kvs_codec;

typedef struct kvs_codec_options {
  /* The caller's model. It must be that of the config. */
  uint32_t layers;
  const uint32_t* kv_heads; /* [layer], 0 in a layer without a KV cache of its own */
  const uint32_t* head_dim; /* [layer], likewise */
  const char* sha256;       /* the digest of the model's weights, as in the config (64 digits), or NULL: any weights */
  uint32_t threads;         /* of one call; 0: as OpenMP has */
  const char* device;       /* NULL or "cpu" */
} kvs_codec_options;

/* Sizes of a layer. A block of n tokens from position p on has s = min(n, max(0, sinks - p)) sinks. Its stream has
 * head_bytes + s * sink_bytes + (n - s) * token_bytes + outliers * outlier_bytes bytes. */
typedef struct kvs_codec_layout {
  uint32_t rows;               /* kvs_codec_rows */
  uint32_t kv_heads, head_dim; /* of the layer */
  uint64_t sinks;              /* number of first tokens of a sequence that are stored in full, in f32 */
  uint64_t recent;             /* number of newest tokens that the config's method does not code yet: for caches */
  double outliers;             /* share of coded tokens that are also stored in q8_0 */
  size_t head_bytes, sink_bytes, token_bytes, outlier_bytes;
} kvs_codec_layout;

/* Layers that are coded together: a row has the keys and values of all of them. Often a group has one layer. A block of
 * n tokens with s sinks (as above) has a stream of
 *  - random access: head_bytes + s * sink_bytes + (n - s) * token_bytes + outliers * outlier_bytes bytes;
 *  - storage: head_bytes + s * sink_bytes bytes, and of the other tokens blocks whose bytes depend on the states. */
typedef struct kvs_codec_group {
  const uint32_t* layers;      /* [count], ascending; valid until the config is closed */
  uint32_t count;              /* of layers */
  uint32_t form;               /* kvs_codec_form */
  uint32_t rows;               /* kvs_codec_rows */
  uint32_t kv_heads, head_dim; /* of each layer */
  uint32_t channels;           /* of the embeddings that rows are predicted from; 0: rows are not predicted */
  uint32_t block_tokens;       /* tokens after the sinks that decode together: 1 with random access */
  uint64_t sinks, recent;      /* as in kvs_codec_layout, as the others */
  double outliers;
  size_t head_bytes, sink_bytes;
  size_t token_bytes, outlier_bytes; /* of all layers; 0 in the storage form */
} kvs_codec_group;

/* Tokens [first_position, first_position + tokens) of a layer or of a group. */
typedef struct kvs_codec_block {
  uint32_t layer;  /* any one of a group */
  uint32_t tokens; /* at least 1 */
  uint64_t first_position;
  /* Coded tokens and outliers of the blocks before this one that share its budget of outliers; 0 and 0: the block has
   * a budget of its own. Blocks that are counted on have the outliers that one block of all tokens would have. */
  uint64_t coded_before, outliers_before;
} kvs_codec_block;

/* Keys and values of tokens in the caller's memory. Channel c of a token's head is element token * token_stride + head
 * * head_stride + c. Strides are numbers of elements; heads must not overlap. */
typedef struct kvs_codec_states {
  void *k, *v; /* kvs_codec_encode() only reads them */
  size_t k_token_stride, k_head_stride, v_token_stride, v_head_stride;
  uint32_t type;    /* kvs_codec_type, of both */
  uint32_t rotated; /* 0: keys before RoPE; 1: keys after RoPE, with the frequencies of the config */
} kvs_codec_states;

/* What rows of tokens are predicted from: the input of the first layer's projections of queries, keys and values, which
 * is the token's embedding after this layer's norm. It depends on the token's id alone. Channel c of a token is element
 * token * token_stride + c. */
typedef struct kvs_codec_inputs {
  const void* x;
  size_t token_stride;
  uint32_t type;     /* kvs_codec_type */
  uint32_t channels; /* as in kvs_codec_group */
} kvs_codec_inputs;

/* Queries of one token, after RoPE. Channel c of query head h is element h * head_stride + c. Query head h reads KV
 * head h / (heads / kv_heads). */
typedef struct kvs_codec_queries {
  const void* q;
  size_t head_stride;
  uint32_t type;  /* kvs_codec_type */
  uint32_t heads; /* a multiple of the layer's KV heads, at most 256 times their number */
  float scale;    /* multiplies q·k before the softmax, usually 1 / sqrt(head_dim) */
  float softcap;  /* above 0: scaled scores s become softcap * tanh(s / softcap) */
} kvs_codec_queries;

/* What a stream holds. */
typedef struct kvs_codec_stream {
  uint32_t layer; /* of a group, the first one */
  uint32_t tokens;
  uint64_t first_position;
  uint32_t sinks, outliers; /* numbers of tokens */
} kvs_codec_stream;

/* Returns KVS_CODEC_VERSION of the library. */
KVS_CODEC_API uint32_t kvs_codec_version(void);

/* Returns the error of this thread's last call that failed. It is valid until the thread's next call. */
KVS_CODEC_API const char* kvs_codec_error(void);

/* Opens a config of `kvcalibrate transform` and checks the digests of its tensors. Cost: reads the tensors, and keeps
 * for each layer two matrices of a token's values and coefficients in f32; where rows are predicted, also one of the
 * coefficients and one of the values by the embedding's channels.
 * @param version  KVS_CODEC_VERSION
 * @param config   path of the config; the file of its tensors is next to it
 * @param codec    set to NULL if the call fails */
KVS_CODEC_API int kvs_codec_open(uint32_t version, const char* config, const kvs_codec_options* options,
                                 kvs_codec** codec);
/* NULL is allowed. */
KVS_CODEC_API void kvs_codec_close(kvs_codec* codec);

/* Writes the sizes of a layer that is coded alone, with random access. @return KVS_CODEC_ARGUMENT for another layer */
KVS_CODEC_API int kvs_codec_layout_of(const kvs_codec* codec, uint32_t layer, kvs_codec_layout* layout);

/* Writes the group of a layer. @return KVS_CODEC_ARGUMENT for a layer that the config does not code */
KVS_CODEC_API int kvs_codec_group_of(const kvs_codec* codec, uint32_t layer, kvs_codec_group* group);

/* Writes the largest number of bytes that the block's stream can have. */
KVS_CODEC_API int kvs_codec_bound(const kvs_codec* codec, const kvs_codec_block* block, size_t* bytes);

/* Encodes a block of a layer that is coded alone. States must be finite. Cost of a token with n values and rows by
 * layer: n² multiplications, and 256 states for each of n values; its error cost takes a decoding of the row.
 * @param bytes  set to the bytes of the stream; with KVS_CODEC_SPACE to a number that was too large for `capacity` */
KVS_CODEC_API int kvs_codec_encode(const kvs_codec* codec, const kvs_codec_block* block, const kvs_codec_states* states,
                                   void* stream, size_t capacity, size_t* bytes);

/* Encodes a block of a group, of one layer or more. In the storage form a block of tokens ends at each multiple of
 * block_tokens after the sinks; streams of consecutive tokens that are cut there have the blocks of one stream. Cost of
 * a token with n values and m coefficients: n * m multiplications; storage: 8 states for each coefficient.
 * @param states  [layer of the group]
 * @param inputs  of the same tokens; NULL where rows are not predicted
 * @param bytes   as in kvs_codec_encode() */
KVS_CODEC_API int kvs_codec_encode_group(const kvs_codec* codec, const kvs_codec_block* block,
                                         const kvs_codec_states* states, const kvs_codec_inputs* inputs, void* stream,
                                         size_t capacity, size_t* bytes);

/* Writes what a stream holds, and checks all of it but the codes: any bytes can be those of rows; blocks that
 * are damaged are mostly found in decoding. */
KVS_CODEC_API int kvs_codec_inspect(const kvs_codec* codec, const void* stream, size_t bytes,
                                    kvs_codec_stream* content);

/* Decodes tokens [first, first + count) of a stream's block; token `first` is the first one in `states`. Cost of a
 * token with rows by layer: n² multiplications; by head: head_dim for each value.
 * @param bytes  of the whole stream */
KVS_CODEC_API int kvs_codec_decode(const kvs_codec* codec, const void* stream, size_t bytes, uint32_t first,
                                   uint32_t count, const kvs_codec_states* states);

/* Decodes these tokens of a group, of one layer or more. The storage form decodes the blocks that have them.
 * @param states  [layer of the group]
 * @param inputs  of tokens [first, first + count); NULL where rows are not predicted */
KVS_CODEC_API int kvs_codec_decode_group(const kvs_codec* codec, const void* stream, size_t bytes, uint32_t first,
                                         uint32_t count, const kvs_codec_states* states,
                                         const kvs_codec_inputs* inputs);

/* Computes the attention of one token's queries over tokens [first, first + count) of a stream's block, count at least
 * 1, with rows by head. Reads codes where they are. Attentions over several streams, and over tokens that the caller
 * holds, join by their sums: with weights w_i = exp(log_sums_i - m) for any m, the result is Σ w_i out_i / Σ w_i. Cost
 * of a token: a decoding without its product, and 2 * head_dim multiplications for each query head.
 * @param queries   of a token that reads all of these tokens: for example, a later one
 * @param out       [query head, head_dim]
 * @param log_sums  [query head]: the natural logarithm of the sum of exp(score) over these tokens */
KVS_CODEC_API int kvs_codec_attend(const kvs_codec* codec, const void* stream, size_t bytes, uint32_t first,
                                   uint32_t count, const kvs_codec_queries* queries, float* out, float* log_sums);

#ifdef __cplusplus
}
#endif

#endif
