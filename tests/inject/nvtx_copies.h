/* Copies of NVTX, imitated: a table of slots each, and a function that shows it. Also what a
 * program does with them. */
#ifndef MT_NVTX_COPIES_H
#define MT_NVTX_COPIES_H

#include "cmocka_all.h"

#include <stdlib.h>

#include <dlfcn.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorded_events.h"
#include "nvtx_parts.h"
#include "thread_names.h"

int InitializeInjectionNvtx(nvtx_get_export_table get);
int InitializeInjectionNvtx2(nvtx_get_export_table get);

static char thread_name_told[64];

static void nothing(void) {}

const struct mt_inject_source mt_thread_names_source = {.forked = nothing};

void mt_thread_name_set(uint32_t os_thread, const char *name, size_t length)
{
    snprintf(thread_name_told, sizeof thread_name_told, "%u %.*s", os_thread, (int)length, name);
}

const nvtx_function mt_nvtx_payload_slots[NVTX_PAYLOAD_SLOT_COUNT];
mt_nvtx_next_slot mt_nvtx_next_payload[NVTX_PAYLOAD_SLOT_COUNT];

struct copy {
    nvtx_function core[NVTX_SLOT_COUNT], core2[NVTX_SLOT_COUNT];
    nvtx_function *tables[2][NVTX_SLOT_COUNT + 1];
    uint32_t tool_version;
};

static struct copy copies[2];

static void stub(void)
{
    abort(); /* what is in a slot before a tool came */
}

static void fresh_copy(struct copy *copy)
{
    memset(copy, 0, sizeof *copy);
    for (int i = 1; i < NVTX_SLOT_COUNT; i++) {
        copy->core[i] = copy->core2[i] = stub;
        copy->tables[0][i] = &copy->core[i];
        copy->tables[1][i] = &copy->core2[i];
    }
}

static int table_of(struct copy *copy, int module, nvtx_function ***table, unsigned *size)
{
    if (module != NVTX_CORE && module != NVTX_CORE2)
        return 0;
    *table = copy->tables[module == NVTX_CORE2];
    *size = NVTX_SLOT_COUNT;
    return 1;
}

#define COPY(number)                                                                               \
    static int table_##number(int module, nvtx_function ***table, unsigned *size)                  \
    {                                                                                              \
        return table_of(&copies[number], module, table, size);                                     \
    }                                                                                              \
    static void version_##number(uint32_t version)                                                 \
    {                                                                                              \
        copies[number].tool_version = version;                                                     \
    }                                                                                              \
    static const void *get_##number(uint32_t id)                                                   \
    {                                                                                              \
        static const struct nvtx_callbacks callbacks = {sizeof callbacks, table_##number};         \
        static const struct nvtx_version version = {sizeof version, 3, 0, version_##number};       \
        return id == 1 ? (const void *)&callbacks : id == 3 ? (const void *)&version : NULL;       \
    }
COPY(0)
COPY(1)

/* call(copy, core, 9, int, (const char *))("x") */
#define CALL(copy, module, number, result, parameters)                                             \
    ((result(*) parameters)copies[copy].module[number])

static inline int push(const char *message)
{
    return CALL(0, core, 9, int, (const char *))(message);
}

static inline int pop(void)
{
    return CALL(0, core, 11, int, (void))();
}

static inline int push_in(void *domain, const struct nvtx_attributes *attributes)
{
    return CALL(0, core2, 4, int, (void *, const struct nvtx_attributes *))(domain, attributes);
}

static inline int pop_in(void *domain)
{
    return CALL(0, core2, 5, int, (void *))(domain);
}

static inline void *domain(const char *name)
{
    return CALL(0, core2, 12, void *, (const char *))(name);
}

static inline void *string(void *in, const char *text)
{
    return CALL(0, core2, 10, void *, (void *, const char *))(in, text);
}

static inline uint64_t start(const char *message)
{
    return CALL(0, core, 5, uint64_t, (const char *))(message);
}

static inline void end(uint64_t id)
{
    CALL(0, core, 7, void, (uint64_t))(id);
}

static inline struct nvtx_attributes ascii(const char *message)
{
    return (struct nvtx_attributes){.version = 3,
                                    .size = sizeof(struct nvtx_attributes),
                                    .message_type = NVTX_MESSAGE_IS_ASCII,
                                    .message = {.ascii = message}};
}

static inline int two_copies(void **state)
{
    (void)state;
    recorded_clear();
    memset(&mt_nvtx_next_core, 0, sizeof mt_nvtx_next_core);
    memset(&mt_nvtx_next_core2, 0, sizeof mt_nvtx_next_core2);
    recorded_settings = (struct mt_inject_settings){.asked = true, .phases_nvtx = true};
    fresh_copy(&copies[0]);
    fresh_copy(&copies[1]);
    if (InitializeInjectionNvtx2(get_0) != 1 || InitializeInjectionNvtx2(get_1) != 1)
        return -1;
    return 0;
}

#endif
