/* PyTorch's caching allocator of CUDA memory. Private to source_torch*.c.
 *
 * Its events come in two ways:
 * - tracker: the allocator's hook for observers, which receives the entries that
 *   torch.cuda.memory._record_memory_history records: requested sizes, streams, pools, segments,
 *   both kinds of free.
 * - reports: the allocator's reports to the profiler, in functions that this library interposes.
 *   They have the sizes of blocks, but no streams and no segments.
 * The tracker is a C++ interface. It is used only if the layout of the allocator is known
 * (source_torch_versions.c, source_torch_allocator.c), and only after its first entry agrees with
 * the report of the same allocation. Until then its events are held back. If they do not agree,
 * only reports are used.
 *
 * All of this code except that for the start of CUDA runs under the allocator's lock. */
#ifndef MT_INJECT_TORCH_PARTS_H
#define MT_INJECT_TORCH_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject_source.h"

extern const struct mt_inject_source mt_torch_source;

/* ---- torch_facts.c: state that all parts share, and facts for the header of the trace ---- */

enum mt_torch_mode {
    MT_TORCH_REPORTS,  /* reports become events */
    MT_TORCH_CHECKING, /* the tracker is attached; its events are held back */
    MT_TORCH_TRACKED,  /* entries become events */
    MT_TORCH_OFF       /* a forked child of a process that used CUDA */
};

extern _Atomic int mt_torch_current_mode;

static inline enum mt_torch_mode mt_torch_mode(void)
{
    return (enum mt_torch_mode)atomic_load_explicit(&mt_torch_current_mode, memory_order_acquire);
}

void mt_torch_set_mode(enum mt_torch_mode mode); /* the tracker decides */

bool mt_torch_reports_seen(void); /* true if a report has become an event */
void mt_torch_note_report(void);

enum { MT_TORCH_VERSION_BYTES = 64 };

/* "2.11.0+cu130", or "" while the version is unknown. */
const char *mt_torch_version_text(void);
void mt_torch_note_version(const char *text);

/* Saves the user's options of the allocator for the header. Call it when CUDA starts. */
void mt_torch_note_options(void);

/* Records in the header whether events come from the tracker or from reports. It does so with the
 * first event, so that the trace of a killed process has these facts. */
void mt_torch_record_source(void);

void mt_torch_facts_forked(void);

/* ---- source_torch_versions.c: known facts about versions ---- */

struct mt_torch_version {
    uint16_t major, minor;
    /* the allocator's table of virtual functions: its length, and the indexes of four functions */
    uint16_t functions;
    uint16_t init, empty_cache, set_fraction, attach_tracker;
    bool has_pool; /* entries name their pool */
};

/* Finds the version of a text such as "2.11.0+cu130". Returns NULL if it is not in the table or is
 * not a release. */
const struct mt_torch_version *mt_torch_version_find(const char *text);

/* Returns true if RecordFunctionCallback is known to have the layout that source_torch_scopes.c
 * expects. */
bool mt_torch_version_has_scopes(const char *text);

/* Returns true if entries name their pool (2.8 and later). Also true for unknown versions. */
bool mt_torch_version_has_pool(const char *text);

/* Reads the version of PyTorch from the files beside one of its libraries. Returns false and
 * sets text to "" if there are none. */
bool mt_torch_version_read(const char *library_path, char *text, size_t text_bytes);

/* ---- source_torch_allocator.c: facts from the symbols of the library ---- */

/* Sets the indexes in *version for a version that is not in the table, from the symbols in the
 * library's file. `functions` is the allocator's table of virtual functions, which has
 * version->functions entries; `base` is the load address of the library. Returns false if the file
 * has no symbols, or if they do not match `functions`. */
bool mt_torch_symbols_find(const char *library_path, uintptr_t base, const uintptr_t *functions,
                           struct mt_torch_version *version);

/* ---- source_torch_allocator.c: finds the allocator and attaches the tracker ---- */

/* Called before the allocators of devices exist: when PyTorch starts CUDA, or earlier by
 * memtrace_begin. Only the first call has an effect. `library` is a handle of a library that uses
 * the allocator; NULL if the program itself uses it. If there are no reports (PyTorch was linked
 * before this library was loaded), entries of the tracker cannot be checked. The tracker is then
 * used only with known releases, and its entries become events immediately. Returns true if the
 * blocks of the allocator will be recorded, as entries or as driver calls. */
bool mt_torch_allocator_meet(void *library, bool has_reports);

/* ---- source_torch_reports.c: entries of the tracker ---- */

/* std::function<void (const TraceEntry &)> as libstdc++ lays it out. */
struct mt_torch_functor {
    uint64_t storage[2];
    bool (*manage)(void *to, const void *from, int operation);
    void (*invoke)(const void *storage, const void *entry);
};

/* Sets *functor to one that calls the tracker. The mode is CHECKING afterwards. */
void mt_torch_tracker_begin(const struct mt_torch_version *version,
                            struct mt_torch_functor *functor);

/* Call it when this thread enters or leaves empty_cache(). */
void mt_torch_tracker_empty_cache(bool enters);

/* Returns true if no request was refused and no memory was returned to the driver so far. */
bool mt_torch_tracker_never_refused(void);

void mt_torch_tracker_forked(void);

/* ---- source_torch_reports.c ---- */

/* Looks up the original functions before they are needed. */
void mt_torch_reports_resolve(void *library);

/* ---- torch_facts.c: the limit of the allocator's memory ---- */

void mt_torch_limit_set(double fraction, int device); /* the program set this fraction */
void mt_torch_limit_reserve(int device, uint64_t bytes, bool gives_back);
void mt_torch_limit_record(void); /* on the writer thread: records the limit in the header */

/* ---- source_torch_scopes.c: RecordFunction ---- */

void mt_torch_scopes_resolve(void *library);

/* Registers for the scopes that the user requested, once. Do not call it under the allocator's
 * lock. Does nothing until the functions are resolved. */
void mt_torch_scopes_begin(void);
void mt_torch_scopes_forked(void);

#endif
