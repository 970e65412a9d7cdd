/* One source of events (CUPTI, NVTX, PyTorch, ...), as the writer thread and the lifecycle
 * call it. sources.c lists them. All hooks run on the writer thread, `forked` in the thread
 * that forks; any may be NULL. */
#ifndef MT_INJECT_SOURCE_H
#define MT_INJECT_SOURCE_H

struct mt_inject_source {
    const char *name;     /* its name in the header fact `sources` */
    void (*start)(void);  /* once, when the collector has started */
    void (*poll)(void);   /* before every flush (at least every flush_ms) */
    void (*stop)(void);   /* before the last flush, at exit */
    void (*forked)(void); /* in the fork handler of a child, which has one thread; must discard all
                             state, and neither take a lock nor call CUDA */
};

#endif
