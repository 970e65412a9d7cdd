/* State of the collector in this process (mt_core) and of the calling thread (mt_self), and the
 * interfaces between its parts (collect.c, intern.c, lifecycle.c, writer_thread.c). Calls go one
 * way:
 *
 *     core <- intern <- collect <- {run_facts, trace_file, the sources}
 *          <- writer_thread <- lifecycle <- sources
 *
 * When the library is loaded, lifecycle.c registers callbacks for collect.c, and sources.c those
 * for writer_thread.c. */
#ifndef MT_INJECT_CORE_H
#define MT_INJECT_CORE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "inject_source.h"
#include "own_file.h"
#include "tape.h"
#include "ticks.h"

enum mt_core_state {
    MT_CORE_NEW,      /* nothing has happened yet */
    MT_CORE_STARTING, /* a thread is opening the files */
    MT_CORE_RUNNING,
    MT_CORE_FAILED,  /* the trace cannot be written any more: events are counted */
    MT_CORE_STOPPED, /* the writer has stopped, because `memtrace record` asked it to */
    MT_CORE_OFF /* recording was not requested or could not start, or this is a child that is not
                   followed */
};

struct mt_core {
    _Atomic int state;
    _Atomic bool stop;                        /* requests that the writer thread end */
    struct mt_tape *tape;                     /* valid in RUNNING and later states */
    struct mt_own_file tape_file, trace_file; /* used only by the writer thread once it runs */
    struct mt_own_file before_file; /* of a ring: the part before the current one, not open */
    char trace_path[4400], part_path[4400 + 8], tape_path[4400 + 8];
    struct mt_clock clock;
    /* Points to the number of this recording, in a page that the kernel zeroes in a forked child.
     * Before the start, points to a zero. */
    const _Atomic uint32_t *generation;
    _Atomic uint32_t *generation_page;
    uint32_t last_generation;
    pid_t process; /* set when the library is loaded and after fork(); not after a bare clone() */
    pthread_t writer;
    _Atomic bool writer_runs;
    sem_t writer_sleeps;         /* 1 while the writer sleeps and no fork() holds it, else 0 */
    _Atomic uint32_t wake;       /* futex of the writer */
    _Atomic uint32_t full_slots; /* number of slots filled since the writer last looked */
    _Atomic uint32_t next_slot;  /* where the search for a free slot begins */
    _Atomic bool is_idle;        /* recording has not begun: events only change what is alive */
    _Atomic bool disk_full; /* the writer waits for disk space, so no thread waits for the writer */
    pthread_key_t thread_key;
    bool thread_key_made;

    /* Set by constructors, which run after the constructor of settings.c. Nothing starts while they
     * are NULL. */
    bool (*start)(void); /* lifecycle.c: true if the collector runs; the first call starts it */
    void (*found_forked)(void); /* lifecycle.c: for a forked child in which no fork handler ran */
    const struct mt_inject_source *const *sources; /* sources.c: NULL at the end */
};

extern struct mt_core mt_core;

/* A definition that the thread used recently. */
struct mt_cached_id {
    uint64_t hash;
    uint32_t id, payload_offset; /* offset in the definitions log, in units of 8 bytes */
};

enum { MT_THREAD_CACHE = 512 };

struct mt_thread {
    uint32_t generation, depth;
    struct mt_slot *slot;
    uint32_t used, room; /* number of events in the slot, and for how many its memory was touched */
    uint32_t number;
    bool never_waits; /* the writer itself */
    struct mt_cached_id cache[MT_THREAD_CACHE];
};

/* State of the calling thread; not NULL between enter and leave. */
extern _Thread_local struct mt_thread *mt_self;

/* Stops all recording until the next start, because the recording's number no longer matches that
 * of any thread. */
void mt_core_forget_generation(void);
void mt_core_wake_writer(void);

/* lifecycle.c: ends the recording before the process ends. Nothing is recorded afterwards. Events
 * of other threads at the same time may be lost. */
enum mt_early_end {
    MT_EARLY_END_WHOLE,   /* the trace was closed, and its tape was removed */
    MT_EARLY_END_NOTHING, /* there is no trace: nothing was recorded */
    MT_EARLY_END_REFUSED  /* `memtrace record` will close the trace, or it cannot be closed now; the
                             rest of the trace is on the tape */
};
enum mt_early_end mt_lifecycle_end(void);

/* collect.c */
void mt_thread_forget(void); /* call it in a forked child: resets the calling thread */
bool mt_thread_key_make(void);

/* intern.c */
void mt_intern_forget(void); /* in a forked child */

/* writer_thread.c */
bool mt_writer_thread_start(void);
/* Drains everything and closes the trace; waits for at most a few seconds. */
void mt_writer_thread_finish(void);
/* Call pause before fork(), resume after it in the parent, and resume_in_child after it in the
 * child. In between, the writer holds no lock of the C library or of the program's allocator. A
 * child has no writer, so such a lock would stay held there. Not every allocator resets its locks
 * in a child (AddressSanitizer's does not before GCC 13). Waits at most a second for the writer,
 * which may itself wait for a lock that a prepare handler of the program has taken. */
void mt_writer_thread_pause(void);
void mt_writer_thread_resume(void);
void mt_writer_thread_resume_in_child(void);
void mt_writer_thread_forget(void); /* in a forked child: no writer runs */

/* run_facts.c: records the process, the host and the rank as facts. */
void mt_run_facts(void);

#endif
