/* Finds the names of native frames of a trace (modules.h). Opens each module once. */
#ifndef MT_COLLECTOR_NATIVE_NAMES_H
#define MT_COLLECTOR_NATIVE_NAMES_H

#include "modules.h"
#include "symbolize.h"

/* The kind of code of a frame. It decides which frames of a stack are kept (finalize.h). */
enum mt_native_role {
    MT_NATIVE_PLAIN,
    MT_NATIVE_INTERPRETER, /* the Python interpreter, whose Python code called the frames inside
                              this one */
    MT_NATIVE_COLLECTOR,   /* libmemtrace-inject.so or CUPTI */
    MT_NATIVE_DRIVER       /* libcuda */
};

struct mt_native_name {
    struct mt_code_position places[MT_MAX_CODE_POSITIONS]; /* outermost first; file never NULL */
    size_t count;                                          /* 0 = no name: the address stays */
    enum mt_native_role role;
};

struct mt_native_counts {
    uint32_t modules, changed, missing;
    const char *example; /* path of one that is changed or missing, or NULL */
};

struct mt_native_names;

/* `recorded_unix_s`: a module without a build id counts as changed if its file is newer than
 * this. */
struct mt_native_names *mt_native_names_new(int64_t recorded_unix_s); /* NULL: no memory */
void mt_native_names_free(struct mt_native_names *names);

/* Texts of *name are valid until the next call. */
enum mt_status mt_native_names_get(struct mt_native_names *names,
                                   const struct mt_native_frame *frame,
                                   struct mt_native_name *name) MT_MUST_USE;

/* counts->example lives as long as `names`. */
void mt_native_names_count(const struct mt_native_names *names, struct mt_native_counts *counts);

#endif
