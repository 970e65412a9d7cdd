/* The header's fact that the device was simulated: the card, the number of devices, and the memory
 * of each. */
#ifndef MT_TRACE_DRY_RUN_H
#define MT_TRACE_DRY_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

struct mt_dry_run {
    char card[64];         /* "H200 141 GB"; "" = not known */
    uint64_t devices;      /* 0 = not known */
    uint64_t memory_bytes; /* of each device; 0 = not known */
};

/* "version=1;card=H200 141 GB;devices=1;memory_bytes=150109880320" */
void mt_dry_run_write(const struct mt_dry_run *dry_run, struct mt_buf *out);

/* Reads the fact of the header. Returns false for NULL: a real device. Fills what can be read of a
 * damaged text or of a later version. */
bool mt_dry_run_read(const char *fact, struct mt_dry_run *dry_run);

/* "simulated H200 141 GB" */
void mt_add_simulated_card(struct mt_buf *out, const struct mt_dry_run *dry_run);

#endif
