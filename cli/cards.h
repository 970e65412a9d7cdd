/* Common GPUs and the memory that their drivers report. */
#ifndef MT_CLI_CARDS_H
#define MT_CLI_CARDS_H

#include <stddef.h>
#include <stdint.h>

/* The CUDA context and the libraries (cuBLAS, cuDNN, NCCL) take about 0.5 to
 * 1 GiB of a card, outside of the allocator's limit. */
#define MT_CARD_OVERHEAD_BYTES ((uint64_t)1 << 30)

struct mt_card {
    const char *name;
    uint64_t memory_bytes;
};

enum mt_card_verdict { MT_CARD_NO, MT_CARD_TIGHT, MT_CARD_FITS };

extern const struct mt_card mt_cards[]; /* ascending by memory; ends with a NULL name */

/* Fits: with the overhead above. Tight: only if the overhead is smaller. */
enum mt_card_verdict mt_card_verdict(const struct mt_card *card, uint64_t fit_bytes);
const char *mt_card_verdict_name(enum mt_card_verdict verdict); /* "fits", "tight", "no" */

#endif
