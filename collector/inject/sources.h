/* The sources behind one table (sources.c): how the lifecycle talks to them.
 * All hooks run on the writer thread; any may be NULL. */
#ifndef MT_INJECT_SOURCES_H
#define MT_INJECT_SOURCES_H

struct mt_inject_source {
    const char *name;     /* as in the header's `sources` */
    void (*start)(void);  /* once, when the collector has started */
    void (*poll)(void);   /* before every flush (each flush_ms or oftener) */
    void (*stop)(void);   /* before the last flush, at exit */
    void (*forked)(void); /* in a forked child (in atfork, one thread): forget
                             everything; take no lock, call no CUDA */
};

extern const struct mt_inject_source *const mt_inject_sources[]; /* NULL at the end */

#endif
