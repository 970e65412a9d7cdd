/* Maps handles to numbers of the collector. A handle that the collector made contains its number,
 * so that an invalid handle is detected without dereferencing it. Handles of the previous tool are
 * looked up in a table. Readers take no lock; entries are never removed. */
#ifndef MT_INJECT_SOURCE_NVTX_HANDLES_H
#define MT_INJECT_SOURCE_NVTX_HANDLES_H

#include <stdatomic.h>
#include <stdint.h>

struct mt_handle_table;

/* Zeroed memory is empty. */
struct mt_handles {
    _Atomic(struct mt_handle_table *) table;
    uint32_t count;
};

/* Assigns `number` to `key`, and replaces an earlier number. The caller holds a lock that excludes
 * other writers. If memory runs out, a new key stays unknown. */
void mt_handles_set(struct mt_handles *handles, const void *key, uint32_t number);
/* Returns 0 if the key is not known. */
uint32_t mt_handles_get(struct mt_handles *handles, const void *key);

/* Handles that the collector makes. They differ from every address of a program. */
enum mt_handle_kind { MT_HANDLE_DOMAIN = 0x6d64, MT_HANDLE_STRING = 0x6d73 };
void *mt_handle_make(enum mt_handle_kind kind, uint32_t number);
/* Returns 0 if the collector did not make the handle, or if it is of another kind. */
uint32_t mt_handle_number(enum mt_handle_kind kind, const void *handle);

#endif
