/* The origins of blocks: what the words of a block (site, phase, role) depend on. There are few of
 * them in a run, so that their words are made once. */
#ifndef MT_ANALYZER_BLOCK_ORIGINS_H
#define MT_ANALYZER_BLOCK_ORIGINS_H

#include "attributed.h"
#include "holding.h"
#include "map.h"

struct mt_analysis;

struct mt_block_origin {
    uint32_t stack, tied; /* as in struct mt_block_life */
    uint32_t phase_name;  /* number of the phase's name as a person would give it */
    uint32_t stream, tag;
    uint16_t pool, heap;
    uint8_t role, tie;
    bool role_recorded;
    bool is_initial; /* older than the recorded history */
    /* words; they live as long as the report */
    const char *site;      /* as in `memtrace live` */
    const char *operation; /* that made it; NULL if the site names it */
    const char *phase;     /* name, "" = none */
    bool is_backward;      /* without a stack: the autograd engine's */
};

/* Of one device. */
struct mt_block_origins {
    struct mt_attribution attribution;
    struct mt_block_origin *list;
    uint32_t count;
    /* PRIVATE */
    size_t capacity;
    uint32_t *phase_names; /* by phase */
    uint32_t phase_count;
    struct mt_map ids;    /* hash of the facts -> index */
    uint32_t recent[512]; /* by stack: an origin to try before `ids` */
};

/* Zeroed memory is ready for it. Call it when the phases are known. */
void mt_block_origins_begin(struct mt_block_origins *origins, const struct mt_analysis *analysis);

/* Returns the index of the block's origin, which may be new. Amortized O(1). */
uint32_t mt_block_origins_find(struct mt_block_origins *origins, const struct mt_block_life *life);
void mt_block_origins_release(struct mt_block_origins *origins);

#endif
