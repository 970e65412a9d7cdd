/* The part of the interface between NVTX (a header-only library in programs) and a tool that the
 * collector implements. The declarations are memtrace's own, so that no NVIDIA header is needed to
 * build. If the real headers are installed, tests/inject/nvtx_abi_check.c compares the declarations
 * with them.
 *
 * Each executable and library that uses NVTX has its own copy. When the copy is called for the
 * first time, it loads $NVTX_INJECTION64_PATH and calls InitializeInjectionNvtx2(get_export_table),
 * which writes the tool's functions into the slots of the copy. Extensions (here: payloads)
 * call InitializeInjectionNvtxExtension(module) instead. */
#ifndef MT_INJECT_NVTX_ABI_H
#define MT_INJECT_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef void (*nvtx_function)(void); /* cast before the call */

enum nvtx_export_table { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };

/* NVTX_TABLE_CALLBACKS. `table` is an array of pointers to slots, in which entry 0 and the last
 * entry are NULL. `size` is one more than the last slot number. */
struct nvtx_callbacks {
    size_t struct_size;
    int (*module_table)(int module, nvtx_function ***table, unsigned *size);
};

/* NVTX_TABLE_VERSION, which NVTX 2 does not have. A tool sets the version that it supports. */
struct nvtx_version {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};

typedef const void *(*nvtx_get_export_table)(uint32_t id);
typedef int (*nvtx_initialize)(nvtx_get_export_table get);

enum nvtx_module { NVTX_CORE = 1, NVTX_CORE2 = 5 };

/* X(slot number, name, result, parameters) for each function of NVTX_CORE and NVTX_CORE2. */
#define NVTX_CORE_SLOTS(X)                                                                         \
    X(1, mark_ex, void, (const struct nvtx_attributes *attributes))                                \
    X(2, mark_a, void, (const char *message))                                                      \
    X(3, mark_w, void, (const wchar_t *message))                                                   \
    X(4, range_start_ex, uint64_t, (const struct nvtx_attributes *attributes))                     \
    X(5, range_start_a, uint64_t, (const char *message))                                           \
    X(6, range_start_w, uint64_t, (const wchar_t *message))                                        \
    X(7, range_end, void, (uint64_t id))                                                           \
    X(8, range_push_ex, int, (const struct nvtx_attributes *attributes))                           \
    X(9, range_push_a, int, (const char *message))                                                 \
    X(10, range_push_w, int, (const wchar_t *message))                                             \
    X(11, range_pop, int, (void))                                                                  \
    X(12, name_category_a, void, (uint32_t category, const char *name))                            \
    X(13, name_category_w, void, (uint32_t category, const wchar_t *name))                         \
    X(14, name_thread_a, void, (uint32_t os_thread, const char *name))                             \
    X(15, name_thread_w, void, (uint32_t os_thread, const wchar_t *name))

#define NVTX_CORE2_SLOTS(X)                                                                        \
    X(1, domain_mark_ex, void, (void *domain, const struct nvtx_attributes *attributes))           \
    X(2, domain_range_start_ex, uint64_t,                                                          \
      (void *domain, const struct nvtx_attributes *attributes))                                    \
    X(3, domain_range_end, void, (void *domain, uint64_t id))                                      \
    X(4, domain_range_push_ex, int, (void *domain, const struct nvtx_attributes *attributes))      \
    X(5, domain_range_pop, int, (void *domain))                                                    \
    X(8, domain_name_category_a, void, (void *domain, uint32_t category, const char *name))        \
    X(9, domain_name_category_w, void, (void *domain, uint32_t category, const wchar_t *name))     \
    X(10, domain_register_string_a, void *, (void *domain, const char *text))                      \
    X(11, domain_register_string_w, void *, (void *domain, const wchar_t *text))                   \
    X(12, domain_create_a, void *, (const char *name))                                             \
    X(13, domain_create_w, void *, (const wchar_t *name))

enum { NVTX_SLOT_COUNT = 16 };

enum nvtx_message_type {
    NVTX_MESSAGE_IS_ASCII = 1,
    NVTX_MESSAGE_IS_WIDE = 2,
    NVTX_MESSAGE_IS_REGISTERED = 3
};

union nvtx_message {
    const char *ascii;
    const wchar_t *wide;
    void *registered;
};

/* `size` is the size of the caller's structure; fields beyond it must not be read. The layout has
 * not changed since NVTX 1. The payload is a number, or, if payload_type is above 6, a pointer to
 * structures of an extension. */
struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, payload_count;
    uint64_t payload;
    int32_t message_type;
    union nvtx_message message;
};

/* Extensions. */
struct nvtx_segment {
    size_t id, slot_count;
    intptr_t *slots; /* 0 = not set yet */
};

struct nvtx_module_info {
    uint16_t nvtx_version, struct_size, module, compatibility;
    size_t segment_count;
    struct nvtx_segment *segments;
    intptr_t (*get_export)(uint32_t id);
    const void *info;
};

typedef int (*nvtx_initialize_extension)(struct nvtx_module_info *module);

/* The payload extension, versions 1.3 and 1.4: ranges and marks with payloads, and schemas that
 * describe payloads. NCCL begins a range with DomainRangePushEx, and ends it with range_pop_payload
 * because the payload is known only then. */
enum {
    NVTX_PAYLOAD_MODULE = 2,
    NVTX_PAYLOAD_OLDEST_COMPATIBILITY = 0x0103,
    NVTX_PAYLOAD_COMPATIBILITY = 0x0104
};

struct nvtx_payload {
    uint64_t schema;
    size_t size;
    const void *bytes;
};

/* A payload type of struct nvtx_attributes: `payload` is the address of `payload_count` elements of
 * struct nvtx_payload. */
#define NVTX_PAYLOAD_IS_EXTENDED ((int32_t)0xDFBD0009)

enum { NVTX_ENTRY_IS_INT = 5, NVTX_ENTRY_IS_UINT64 = 18 };

/* If `flags` is 0, the entry is one value of this `type`. */
struct nvtx_schema_entry {
    uint64_t flags, type;
    const char *name, *description;
    uint64_t detail, offset;
    const void *semantics, *reserved;
};

enum { NVTX_SCHEMA_IS_STATIC = 1, NVTX_STATIC_SCHEMAS = 1 << 24 };

enum nvtx_schema_field {
    NVTX_SCHEMA_HAS_TYPE = 1 << 2,
    NVTX_SCHEMA_HAS_ENTRIES = 1 << 4,
    NVTX_SCHEMA_HAS_COUNT = 1 << 5,
    NVTX_SCHEMA_HAS_ID = 1 << 8
};

struct nvtx_schema {
    uint64_t fields; /* bits of enum nvtx_schema_field: a member without its bit is not set */
    const char *name;
    uint64_t type, flags;
    const struct nvtx_schema_entry *entries;
    size_t entry_count, payload_bytes, alignment;
    uint64_t id; /* at least NVTX_STATIC_SCHEMAS; newer headers have more fields */
};

#define NVTX_PAYLOAD_SLOTS(X)                                                                      \
    X(0, schema_register, uint64_t, (void *domain, const struct nvtx_schema *schema))              \
    X(2, mark_payload, void, (void *domain, const struct nvtx_payload *payloads, size_t count))    \
    X(3, range_push_payload, int,                                                                  \
      (void *domain, const struct nvtx_payload *payloads, size_t count))                           \
    X(4, range_pop_payload, int,                                                                   \
      (void *domain, const struct nvtx_payload *payloads, size_t count))                           \
    X(5, range_start_payload, uint64_t,                                                            \
      (void *domain, const struct nvtx_payload *payloads, size_t count))                           \
    X(6, range_end_payload, void,                                                                  \
      (void *domain, uint64_t id, const struct nvtx_payload *payloads, size_t count))

enum { NVTX_PAYLOAD_SEGMENT = 0, NVTX_PAYLOAD_SLOT_COUNT = 7 };

#endif
