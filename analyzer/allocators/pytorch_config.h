/* Options of PyTorch's caching allocator, as PYTORCH_CUDA_ALLOC_CONF spells
 * them, and the sizes that follow from them. Source: c10/core/AllocatorConfig
 * and c10/cuda/CUDACachingAllocator of PyTorch 2.11 (defaults and limits). */
#ifndef MT_ANALYZER_PYTORCH_CONFIG_H
#define MT_ANALYZER_PYTORCH_CONFIG_H

#include "source.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_PYTORCH_UNLIMITED UINT64_MAX
enum { MT_PYTORCH_DIVISIONS = 16 };

struct mt_pytorch_config {
    uint64_t max_split_bytes; /* MT_PYTORCH_UNLIMITED = off */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes;
    double gc_threshold;                      /* 0 = off */
    double memory_fraction;                   /* 1 = off */
    uint64_t divisions[MT_PYTORCH_DIVISIONS]; /* [i]: sizes in [2^i, 2^(i+1)) MiB */
    bool expandable_segments;
    bool throws_on_oom; /* throw_on_cudamalloc_oom, as in PyTorch 2.15 */
    bool async_backend; /* backend:cudaMallocAsync: another allocator */
    /* The first recorded option that was not understood, truncated if necessary; "" if none. A
     * newer PyTorch may have options that this version does not know. */
    char unknown[64];
};

void mt_pytorch_config_defaults(struct mt_pytorch_config *config);

/* Reads "key:value,key=[a:b,c:d],...". Unknown keys and values that PyTorch
 * would refuse are MT_ERR_USAGE with a reason. Keys without an effect on
 * placement (pinned_*, release_lock_on_cudamalloc, ...) are accepted. */
enum mt_status mt_pytorch_config_parse(const char *text, struct mt_pytorch_config *config,
                                       struct mt_error *error) MT_MUST_USE;

/* Reads the settings of the recorded run: its option string, then the numeric settings in the
 * trace, which take precedence (PyTorch prints the effective values). Skips options that cannot be
 * read; the first of them is config->unknown. */
enum mt_status mt_pytorch_config_recorded(const struct mt_trace_header *header,
                                          struct mt_pytorch_config *config,
                                          struct mt_error *error) MT_MUST_USE;

/* "PyTorch 2.11.0+cu130" -> 211; 0 if not in the trace. */
unsigned mt_pytorch_version(const struct mt_trace_header *header);

/* Returns the order found by a replay, otherwise the rule of the recorded version, otherwise
 * MT_FREE_LOWEST. `header` may be NULL. */
enum mt_free_order mt_pytorch_free_order(const struct mt_trace_header *header);

/* Writes the canonical spelling of options that differ from the defaults; "" if none. */
void mt_pytorch_config_spell(const struct mt_pytorch_config *config, char *text, size_t size);

/* Bytes of the block for a request; > 0. */
uint64_t mt_pytorch_round_size(const struct mt_pytorch_config *config, uint64_t size_bytes);

/* Bytes of the segment that is requested if no free block of this rounded size exists. */
uint64_t mt_pytorch_segment_size(const struct mt_pytorch_config *config, uint64_t rounded_bytes);

#define MT_PYTORCH_SMALL_LIMIT   ((uint64_t)1 << 20)  /* largest size of the small pool */
#define MT_PYTORCH_OWN_SEGMENT   ((uint64_t)10 << 20) /* at least this: a segment of its own */
#define MT_PYTORCH_SMALL_SEGMENT ((uint64_t)2 << 20)
#define MT_PYTORCH_MIN_BLOCK     ((uint64_t)512)

/* Whether a free block of `block_bytes` is split when a request of `rounded_bytes` takes it. */
bool mt_pytorch_should_split(const struct mt_pytorch_config *config, uint64_t block_bytes,
                             uint64_t rounded_bytes, bool expandable_request);

#endif
