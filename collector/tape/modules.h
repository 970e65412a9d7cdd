/* The mapped files of a traced process, from the definitions in its tape: finds the file that
 * contains an address. */
#ifndef MT_COLLECTOR_MODULES_H
#define MT_COLLECTOR_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* The payload of MT_DEFINE_MODULE is this structure, then the build id, then the path. A later
 * definition replaces the modules that it overlaps. */
struct mt_module_definition {
    uint64_t begin, end; /* address range that covers all its segments */
    uint64_t bias;       /* address - bias = address in the file's symbol table */
    uint32_t build_id_bytes, path_bytes;
};

#define MT_MAX_BUILD_ID_BYTES 64u

struct mt_modules; /* sorted by address */

struct mt_modules *mt_modules_new(void); /* NULL: no memory */
void mt_modules_free(struct mt_modules *modules);

/* MT_ERR_FORMAT: the payload is invalid. MT_ERR_UNSUPPORTED: there are more modules than any real
 * process has. On failure nothing changes. */
enum mt_status mt_modules_add(struct mt_modules *modules, const void *payload,
                              size_t payload_bytes) MT_MUST_USE;

/* A frame in a trace before symbols are resolved (docs/internals/trace-format.md): `file` is the
 * path of the module, followed by " (build id HEX)" if it has one. `function` is "+0x" and the
 * address in the file minus 1, because the frame is the call and not its return address. Without a
 * module, `function` is "0x" and the address minus 1, and `file` is "". */
struct mt_native_frame {
    const char *file, *function;
    size_t file_length, function_length;
};

/* Strings are valid until the next call. O(log modules). */
void mt_modules_frame(struct mt_modules *modules, uint64_t return_address,
                      struct mt_native_frame *frame);

/* A native frame, parsed from the texts of a trace. */
struct mt_native_position {
    uint64_t address;   /* in the file of the module; without a module, in the process */
    size_t path_length; /* of the module in `file`, 0 = none */
    uint8_t build_id[MT_MAX_BUILD_ID_BYTES];
    size_t build_id_bytes;
};

/* Returns false if the texts are not a native frame. */
bool mt_native_frame_parse(const struct mt_native_frame *frame, struct mt_native_position *place);

#endif
