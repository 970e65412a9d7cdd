/* The memory of a card that a run needs, which every output calls "card": what the allocator must
 * have, other libraries, and CUDA itself. */
#ifndef MT_DATA_CARD_USE_H
#define MT_DATA_CARD_USE_H

#include "cards.h"
#include "report.h"

/* Returns a clause with the reason why the peaks of a device may be smaller than those of the whole
 * program: the trace is truncated, the run ended early, or a reason that the caller of mt_analyze
 * gives. NULL: they are not smaller. */
const char *mt_peaks_doubt(const struct mt_report *report, const struct mt_device_report *device);

enum mt_card_cuda {
    MT_CUDA_UNKNOWN,
    MT_CUDA_MEASURED, /* by NVML while the program ran: used by the process minus all allocations */
    MT_CUDA_TABLE,    /* measured by other programs on this model of card (cards.h) */
    /* MT_CARD_OVERHEAD_BYTES with the libraries; or from that table although communicators
     * of as many ranks are not in it. */
    MT_CUDA_ASSUMED
};

/* "measured", "table", "assumed". */
const char *mt_card_cuda_name(enum mt_card_cuda cuda);

struct mt_card_use {
    uint64_t bytes; /* the sum of the three */
    /* The smallest limit under which the allocator serves the run; if that is unknown, the reserved
     * peak, with which the run was served. A lower bound if `why_more` is set. */
    uint64_t allocator_bytes;
    uint64_t libraries_bytes; /* taken from the driver by others, at the allocated peak */
    uint64_t cuda_bytes;      /* context, modules, local memory */
    enum mt_card_cuda cuda_from;
    const char *why_more; /* the run needs at least this, and perhaps more: why; otherwise NULL */
};

/* Returns false if no card is involved, or nothing about it is known: host memory, simulated
 * settings, an arena of XLA whose requests are missing, no allocations, a request that no card can
 * serve. Cheap. */
bool mt_card_use_of(const struct mt_report *report, const struct mt_device_report *device,
                    struct mt_card_use *use);

/* Whether the card has as much memory as the run needs at least. */
bool mt_card_use_fits(const struct mt_card_use *use, const struct mt_card *card);

/* For a dry run: the costs beside the allocator. A simulated device cannot measure them, so they
 * come from a table of real measurements. */

struct mt_card_overhead_row {
    const struct mt_card_cost *cost;
    uint64_t count; /* number of handles */
};

struct mt_card_overhead {
    unsigned cuda_major;    /* 0 = not in the trace */
    uint64_t outside_bytes; /* taken from the driver by the simulated libraries */
    bool lacks_rows;        /* the table lacks rows for this card and this CUDA */
    /* Ranks of the run, if NCCL connects more of them than a communicator was measured with;
     * otherwise 0. */
    uint64_t unmeasured_ranks;
    bool is_known; /* lacks_rows is false and unmeasured_ranks is 0 */
    struct mt_card_overhead_row rows[3];
    uint32_t row_count;
    uint64_t most_bytes; /* outside_bytes and the rows at their maximum */
};

/* The number of handles follows from the run: one for the main thread, and one for autograd's if
 * there was a backward pass. Cheap. */
struct mt_card_overhead mt_card_overhead_of(const struct mt_report *report,
                                            const struct mt_device_report *device);

#endif
