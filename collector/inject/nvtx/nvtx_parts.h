/* Interfaces between the files of the NVTX source.
 *
 *     source_nvtx.c          connects a copy of NVTX: its slots, and the previous tool
 *     source_nvtx_slots.c    the functions in the slots
 *     source_nvtx_ranges.c   open ranges of each thread, and started ranges
 *     source_nvtx_domains.c  domains, registered strings, categories and their handles
 *     source_nvtx_text.c     the name of an event
 *     source_nvtx_payload.c  the payload extension: ranges that end with a payload
 *     source_nvtx_schemas.c  communicators in NCCL's payloads
 *
 * The trace gets PHASE_PUSH, PHASE_POP and MARK. Their names are "message" in the default domain,
 * and "domain: message" in others. Payloads of NCCL's communicators become COMMUNICATOR; other
 * payloads and colors are not recorded. */
#ifndef MT_INJECT_NVTX_PARTS_H
#define MT_INJECT_NVTX_PARTS_H

#include <stdatomic.h>

#include "nvtx_abi.h"
#include "inject_source.h"

extern const struct mt_inject_source mt_nvtx_source;

/* --- slots --- */

/* Functions of the collector, by slot number; NULL = none. */
extern const nvtx_function mt_nvtx_core_slots[NVTX_SLOT_COUNT];
extern const nvtx_function mt_nvtx_core2_slots[NVTX_SLOT_COUNT];
extern const nvtx_function mt_nvtx_payload_slots[NVTX_PAYLOAD_SLOT_COUNT];

/* Functions of the previous tool. The collector's functions call them. */
typedef _Atomic(nvtx_function) mt_nvtx_next_slot;
extern mt_nvtx_next_slot mt_nvtx_next_core[NVTX_SLOT_COUNT];
extern mt_nvtx_next_slot mt_nvtx_next_core2[NVTX_SLOT_COUNT];
extern mt_nvtx_next_slot mt_nvtx_next_payload[NVTX_PAYLOAD_SLOT_COUNT];

/* --- text --- */

#define MT_MAX_NVTX_TEXT_BYTES 1024u /* bytes of a name; longer ones are cut */

/* Returns the id of the event's name for mt_collect_emit; 0 if it could not be stored. Call it
 * between mt_collect_enter and leave. */
uint32_t mt_nvtx_name(uint32_t domain, const struct nvtx_attributes *attributes);

/* Converts a wide text to UTF-8, cut at `capacity` bytes, without a terminator. Returns its
 * length. */
size_t mt_nvtx_from_wide(const wchar_t *wide, char *out, size_t capacity);
/* Returns the length of the longest part of `text` that has at most `capacity` bytes and does not
 * end inside a UTF-8 sequence. */
size_t mt_nvtx_length(const char *text, size_t capacity);

/* --- domains --- */

struct mt_nvtx_text {
    const char *bytes;
    size_t length;
};

/* Returns the number of a domain, at least 1; 0 for the default domain and for unknown handles.
 * Equal names have one number. */
uint32_t mt_nvtx_domain(void *handle);
/* Returns "domain: "; empty for 0. The text is never freed. */
struct mt_nvtx_text mt_nvtx_domain_prefix(uint32_t domain);
/* Return the handle for the program. `next` is the handle that the previous tool returned, or NULL;
 * if it is not NULL, it is the result. */
void *mt_nvtx_domain_create(struct mt_nvtx_text name, void *next);

void *mt_nvtx_string_register(uint32_t domain, struct mt_nvtx_text text, void *next);
/* Returns the name of a registered string, with its domain; empty if the handle is unknown. The
 * text is never freed. */
struct mt_nvtx_text mt_nvtx_string(void *handle);

/* Convert a handle or attributes for the previous tool, which cannot use handles that the collector
 * made. */
void *mt_nvtx_next_handle(void *handle);
const struct nvtx_attributes *mt_nvtx_next_attributes(const struct nvtx_attributes *attributes,
                                                      struct nvtx_attributes *copy);

void mt_nvtx_category_set(uint32_t domain, uint32_t category, struct mt_nvtx_text name);
/* Returns the name of a category, with its domain; empty if it has none. The text is never
 * freed. */
struct mt_nvtx_text mt_nvtx_category(uint32_t domain, uint32_t category);

void mt_nvtx_domains_forked(void);

/* --- ranges --- */

/* Both return the nesting level in the domain, starting at 0, as NVTX specifies; pop returns -1
 * if no range was open. */
int mt_nvtx_push(uint32_t domain, const struct nvtx_attributes *attributes);
int mt_nvtx_pop(uint32_t domain);

/* Ranges that may end on another thread. `next` is the id that the previous tool returned, or 0;
 * returns the id for the program. Lock-free. */
uint64_t mt_nvtx_start(uint64_t next, uint32_t domain, const struct nvtx_attributes *attributes);
void mt_nvtx_end(uint64_t id);

void mt_nvtx_mark(uint32_t domain, const struct nvtx_attributes *attributes);

/* Returns the id of the name of the innermost open range of this thread in a domain; 0 = none. */
uint32_t mt_nvtx_innermost_name(uint32_t domain);

/* Call it in a forked child: discards open ranges, which belong to the trace of the parent. */
void mt_nvtx_ranges_forked(void);

/* --- payloads --- */

/* Adds a schema that a copy of NVTX registers. Takes a lock only for schemas of NCCL. */
void mt_nvtx_schema_add(uint32_t domain, const struct nvtx_schema *schema);

/* Records COMMUNICATOR if the domain is that of NCCL and the payloads describe a communicator.
 * Call it between push and pop of their range. */
void mt_nvtx_communicator_record(uint32_t domain, const struct nvtx_payload *payloads,
                                 size_t count);
/* Like mt_nvtx_communicator_record, for the payloads (if any) in the attributes with which a range
 * begins. */
void mt_nvtx_communicator_attached(uint32_t domain, const struct nvtx_attributes *attributes);

/* Returns the id of the last communicator that NCCL named on this thread; 0 = none since
 * mt_nvtx_communicator_forget. */
uint64_t mt_nvtx_communicator_last(void);
void mt_nvtx_communicator_forget(void);

/* Call it in a forked child: keeps the schemas and resets their lock. */
void mt_nvtx_schemas_forked(void);

#endif
