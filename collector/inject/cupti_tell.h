/* Converts driver calls to events; call it between mt_collect_enter and leave. Keeps the live
 * memory (cupti_live.h) consistent with the recorded events. */
#ifndef MT_INJECT_CUPTI_TELL_H
#define MT_INJECT_CUPTI_TELL_H

#include "cupti_calls.h"
#include "cupti_live.h"
#include "tape.h"

/* The block is alive from now on. One without device (MT_CU_UNKNOWN_DEVICE) gets
 * that of the call's context. `stream` is the driver's handle. */
void mt_cupti_tell_alloc(const struct mt_cupti_call *call, const struct mt_live_block *block,
                         uint64_t stream);

/* A call that should have allocated did not. */
void mt_cupti_tell_failed(const struct mt_cupti_call *call, enum mt_raw_heap heap, size_t bytes);

/* Takes the block out and tells its end; false if none is known. */
bool mt_cupti_free(enum mt_live_space space, uint64_t addr, uint64_t stream);

/* Takes that many references and mappings from physical memory; its end is told
 * when none is left. */
void mt_cupti_let_go(uint64_t handle, int references, int mappings);

/* All that goes with a context. */
void mt_cupti_free_all_of(uint64_t context);

/* The thread enters a call. What mt_cupti_free and let_go do from now on (the
 * first few of it) is taken back by mt_cupti_exit_free if the call failed. */
void mt_cupti_begin_call(void);

/* Frees that succeeded of memory that was not known: older than the collector,
 * or of a kind that is not decoded. */
uint64_t mt_cupti_unknown_frees(void);

#endif
