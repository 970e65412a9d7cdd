#include "restore_doubts.h"

#include <stdio.h>

#include "check.h"
#include "units.h"

const char *mt_restore_doubt(const struct mt_restore_share *share, unsigned number,
                             char text[MT_RESTORE_DOUBT_TEXT])
{
    const struct {
        uint64_t count;
        const char *words;
    } doubts[MT_RESTORE_DOUBTS] = {
        {share->unplaced, "restored blocks did not fit in the simulated pool and were allocated as "
                          "ordinary requests: the peaks are approximate"},
        {share->gaps_left_out,
         "gaps are omitted, because the simulated pool is divided in another way: allocated and "
         "requested do not count what PyTorch allocates and frees while it restores"},
        {share->segments_unwatched,
         "segments of private pools were not tracked, because too many existed at once: pools that "
         "are restored with them are replayed as ordinary requests"},
    };
    char count[MT_UNITS_TEXT];

    MT_ASSERT(number < MT_RESTORE_DOUBTS);
    if (!doubts[number].count)
        return NULL;
    snprintf(text, MT_RESTORE_DOUBT_TEXT, "%s %s", mt_format_count(count, doubts[number].count),
             doubts[number].words);
    return text;
}
