/* Why memory ran out: the decision that text, JSON and pages print. */
#ifndef MT_DATA_OOM_WHY_H
#define MT_DATA_OOM_WHY_H

#include "report.h"

enum mt_oom_kind {
    MT_OOM_IMPOSSIBLE,   /* no card has as much: the size of the request is wrong */
    MT_OOM_NO_ADDRESSES, /* the address space ran out, not the memory */
    MT_OOM_WAITING,      /* enough memory was freed, but other streams may still use it */
    MT_OOM_FRAGMENTED,   /* enough reserved memory was unused, but not in one piece */
    MT_OOM_OWN_LIMIT,    /* the card had enough: the process has a limit of its own */
    MT_OOM_BY_OTHERS,    /* other processes hold more of the card than is missing */
    MT_OOM_CARD_FULL,    /* by this process */
    MT_OOM_CARD_FULL_BY  /* by this process or by others: the recording does not tell */
};

struct mt_oom_why {
    enum mt_oom_kind kind;
    bool under_own_limit;  /* also with another kind: the card had enough memory free */
    uint64_t others_bytes; /* of other processes, BY_OTHERS */
    uint64_t waiting_bytes;
    /* The step has added more to what it began with than any step before it: `times` as much. 0 =
     * it has not, or no step came before it. */
    double times_last_step;
    bool is_first_pass;     /* no step ended before, and no gradient or optimizer state exists */
    uint64_t to_come_bytes; /* then: of gradients, which are as large as the parameters that need
                               them; 0 = nothing shows that the program trains */
};

/* `oom` is of this device. Its device_free_bytes is what the driver reported. Cheap. */
struct mt_oom_why mt_oom_why_of(const struct mt_report *report,
                                const struct mt_device_report *device, const struct mt_oom *oom);

/* "own_limit", ...: the member "why" of JSON. */
const char *mt_oom_kind_name(enum mt_oom_kind kind);

#endif
