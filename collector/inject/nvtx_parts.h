/* Interfaces between the files of the NVTX source.
 *
 *     source_nvtx.c          a copy of NVTX connects: slots, and the tool that was there before
 *     source_nvtx_slots.c    the functions in the slots
 *     source_nvtx_ranges.c   open ranges of each thread, and started ranges
 *     source_nvtx_domains.c  domains, registered strings, categories and their handles
 *     source_nvtx_text.c     the name of an event
 *     source_nvtx_payload.c  the payload extension: ranges that end with a payload
 *     source_nvtx_schemas.c  communicators in NCCL's payloads
 *     source_nvtx_memory.c   the memory extension: pools that register their blocks
 *
 * The trace gets PHASE_PUSH, PHASE_POP and MARK with names "message" (default domain) or "domain:
 * message". Payloads of NCCL's communicators become COMMUNICATOR; other payloads and colors are
 * not recorded. */
#ifndef MT_INJECT_NVTX_PARTS_H
#define MT_INJECT_NVTX_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "nvtx_abi.h"
#include "inject_source.h"

extern const struct mt_inject_source mt_nvtx_source;

/* --- slots --- */

/* Ours, by number; NULL where we have none. */
extern const nvtx_function mt_nvtx_core_slots[NVTX_SLOT_COUNT];
extern const nvtx_function mt_nvtx_core2_slots[NVTX_SLOT_COUNT];
extern const nvtx_function mt_nvtx_memory_slots[NVTX_MEMORY_SLOT_COUNT];
extern const nvtx_function mt_nvtx_payload_slots[NVTX_PAYLOAD_SLOT_COUNT];

/* Functions of the previous tool, which those of the collector call. */
typedef _Atomic(nvtx_function) mt_nvtx_next_slot;
extern mt_nvtx_next_slot mt_nvtx_next_core[NVTX_SLOT_COUNT];
extern mt_nvtx_next_slot mt_nvtx_next_core2[NVTX_SLOT_COUNT];
extern mt_nvtx_next_slot mt_nvtx_next_memory[NVTX_MEMORY_SLOT_COUNT];
extern mt_nvtx_next_slot mt_nvtx_next_payload[NVTX_PAYLOAD_SLOT_COUNT];

/* --- text --- */

#define MT_MAX_NVTX_TEXT_BYTES 1024u /* bytes of a name; longer ones are cut */

/* Id of the event's name for mt_collect_emit; 0 if it could not be kept. Only
 * between mt_collect_enter and leave. */
uint32_t mt_nvtx_name(uint32_t domain, const struct nvtx_attributes *attributes);

/* UTF-8 of a wide text, cut at capacity; returns its length. No terminator. */
size_t mt_nvtx_from_wide(const wchar_t *wide, char *out, size_t capacity);
/* Length of a text of at most `capacity` bytes, not cut inside a UTF-8 sequence. */
size_t mt_nvtx_length(const char *text, size_t capacity);

/* --- domains --- */

struct mt_nvtx_text {
    const char *bytes;
    size_t length;
};

/* Domains count from 1; 0 is the default domain, and what an unknown handle
 * means. Equal names are one domain. */
uint32_t mt_nvtx_domain(void *handle);
/* "domain: ", empty for 0. Lives forever. */
struct mt_nvtx_text mt_nvtx_domain_prefix(uint32_t domain);
/* The handle for the program. `next` is that of the tool before us (then the
 * program gets that one), or NULL. */
void *mt_nvtx_domain_create(struct mt_nvtx_text name, void *next);

void *mt_nvtx_string_register(uint32_t domain, struct mt_nvtx_text text, void *next);
/* The whole name of a registered string, with its domain; empty if unknown.
 * Lives forever. */
struct mt_nvtx_text mt_nvtx_string(void *handle);

/* What to pass to the tool before us: handles that we made mean nothing to it. */
void *mt_nvtx_next_handle(void *handle);
const struct nvtx_attributes *mt_nvtx_next_attributes(const struct nvtx_attributes *attributes,
                                                      struct nvtx_attributes *copy);

void mt_nvtx_category_set(uint32_t domain, uint32_t category, struct mt_nvtx_text name);
/* Name of a category with its domain, empty if it has none. Lives forever. */
struct mt_nvtx_text mt_nvtx_category(uint32_t domain, uint32_t category);

void mt_nvtx_domains_forked(void);

/* --- ranges --- */

/* Both return the nesting level in the domain, from 0, as NVTX wants it; pop
 * returns -1 if nothing was open. */
int mt_nvtx_push(uint32_t domain, const struct nvtx_attributes *attributes);
int mt_nvtx_pop(uint32_t domain);

/* Ranges that may end on another thread. `next` is the id that the tool before
 * us gave, or 0; returns the id for the program. Lock-free. */
uint64_t mt_nvtx_start(uint64_t next, uint32_t domain, const struct nvtx_attributes *attributes);
void mt_nvtx_end(uint64_t id);

void mt_nvtx_mark(uint32_t domain, const struct nvtx_attributes *attributes);

/* Id of the name of the innermost open range of this thread in a domain, 0 = none. */
uint32_t mt_nvtx_innermost_name(uint32_t domain);

/* In a forked child: what is open was the parent's, and stays in its trace. */
void mt_nvtx_ranges_forked(void);

/* --- payloads --- */

/* A schema that a copy of NVTX registers. Takes a lock only for NCCL's. */
void mt_nvtx_schema_add(uint32_t domain, const struct nvtx_schema *schema);

/* COMMUNICATOR, if the domain is NCCL's and the payloads say something of one. Between
 * push and pop of the range that they belong to. */
void mt_nvtx_communicator_tell(uint32_t domain, const struct nvtx_payload *payloads, size_t count);
/* The same for the payloads of a range that begins, if it has any. */
void mt_nvtx_communicator_attached(uint32_t domain, const struct nvtx_attributes *attributes);

/* The id of the communicator that NCCL spoke of last on this thread, 0 = none since
 * mt_nvtx_communicator_forget. */
uint64_t mt_nvtx_communicator_last(void);
void mt_nvtx_communicator_forget(void);

/* In a forked child: schemas stay known, their lock is free. */
void mt_nvtx_schemas_forked(void);

/* --- memory extension --- */

void mt_nvtx_memory_forked(void);

#endif
