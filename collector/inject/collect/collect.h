/* The interface for sources (CUPTI, NVTX, PyTorch, ...) to record an event. Every function may be
 * called from any thread, inside the driver's and the framework's locks: none takes the GIL,
 * calls CUDA, or waits for another thread (except for a bounded time when the disk cannot keep
 * up). Errors are counted, never returned: the program continues.
 *
 *     if (!mt_collect_enter()) return;
 *     struct mt_raw_event event = {.kind = MT_EVENT_ALLOC, .heap = MT_RAW_DRIVER, ...};
 *     mt_collect_stacks(&event);
 *     mt_collect_emit(&event);
 *     mt_collect_leave(); */
#ifndef MT_INJECT_COLLECT_H
#define MT_INJECT_COLLECT_H

#include <stdbool.h>
#include <stddef.h>

#include "collect_message.h"
#include "tape.h"

/* Returns true if this thread may emit events now. The first call of a process starts the collector
 * (files, writer thread). Returns false if recording is off or could not start, if the process is a
 * forked child that is not followed, or if this thread is already recording an event (the call is
 * in a signal handler, or in a callback that the collector caused). After false, do not call
 * mt_collect_leave. Costs a few ns. */
bool mt_collect_enter(void);
void mt_collect_leave(void);

/* Returns true if the collector is running in this process. Does not start it, unlike
 * mt_collect_enter. */
bool mt_collect_is_running(void);

/* Returns true if recording has not begun (record --idle): only events that change what is alive
 * are of use. Call it at any time. */
bool mt_collect_is_idle(void);

/* Call the functions below only between enter and leave, unless their comments allow any time. */

/* Stamps the event with the global order and the time, and appends it. <= 30 ns. */
void mt_collect_emit(const struct mt_raw_event *event);

/* Fills in python_stack and native_stack according to the settings; frees usually have no stacks.
 * The first 16,384 driver allocations of device memory in a process always have native stacks:
 * they identify the library that allocates. */
void mt_collect_stacks(struct mt_raw_event *event);

/* Returns true if stacks of this process get native frames: if they were requested, or by default
 * if the process has no Python. Call it at any time. */
bool mt_collect_takes_native(void);
/* The first returns true if an event has received a native stack, the second if one has received
 * a native stack that was requested. Call them at any time. */
bool mt_collect_has_native(void);
bool mt_collect_has_requested_native(void);

/* Returns the id of a name (of a phase, mark, ...), or 0 if it could not be stored. Copies the
 * text. Costs a hash lookup if the name is known. */
uint32_t mt_collect_name(const char *text, size_t length);

/* Returns the id of a pool from its two numbers (PyTorch's MempoolId, or the driver's handle and
 * 0); the id of (0, 0) is 0. */
uint32_t mt_collect_pool(uint64_t a, uint64_t b);

/* Returns the number of the calling thread in the tape, at least 1. */
uint32_t mt_collect_thread(void);

/* Sets a fact in the trace's header; keys are in docs/internals/trace-format.md 2.1. A second value
 * is appended for `sources` and `not_recorded` and replaces the first for other keys. Call it at
 * any time after the start. */
void mt_collect_fact(const char *key, const char *value);
void mt_collect_device(uint32_t index, uint64_t total_bytes, const char *name);

/* Like mt_collect_message, and adds the text to the fact `not_recorded`. For something that was
 * requested and cannot be recorded. Call it once per process, because each process has its own
 * trace. */
void mt_collect_not_recorded(bool *once, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
