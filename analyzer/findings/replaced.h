/* Buffers that each step replaces by a longer one, x = torch.cat([x, new]). The evidence is a line
 * of the program whose blocks outlive their step and end in the next step, which leaves more bytes
 * behind. Batches of growing length also leave more bytes behind. A replacement differs from them:
 * it is allocated while the old block exists. It is longer by the size of a block that the step
 * allocated before, or by a constant fraction of that size (a third, for keys and values that were
 * computed together). */
#ifndef MT_ANALYZER_REPLACED_H
#define MT_ANALYZER_REPLACED_H

#include "analysis.h"
#include "lives.h"

#define MT_MAX_REPLACED 8 /* lines; the largest */

struct mt_replaced {
    uint32_t frame, stack;   /* the line, and one stack of it */
    uint32_t first_step;     /* first step that left blocks; each later step left more */
    uint32_t blocks, stacks; /* blocks that the last step left, and the number of their stacks */
    bool even;               /* the additional bytes are the same in each step */
    uint64_t old_bytes, new_bytes; /* bytes that the step before `begin` and the last step left */
};

/* Searches the steps [begin, end) of `lives` for such buffers; begin > 0. mt_replaced_find reads
 * the source from its start to its end only if some lines leave more in each step, in total at
 * least `least_bytes`. `lines` has room for MT_MAX_REPLACED. */
struct mt_replaced_question {
    const struct mt_device_report *device;
    const struct mt_lives *lives;
    uint32_t begin, end;
    uint64_t least_bytes;
};
enum mt_status mt_replaced_find(struct mt_analysis *analysis,
                                const struct mt_replaced_question *question,
                                struct mt_replaced *lines, uint32_t *count) MT_MUST_USE;

#endif
