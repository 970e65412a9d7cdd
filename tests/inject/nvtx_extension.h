/* For tests of NVTX's extensions: one copy of an extension, imitated, that shows its slots. */
#ifndef MT_NVTX_EXTENSION_H
#define MT_NVTX_EXTENSION_H

#include "cmocka_all.h"

#include "recorded_events.h"
#include "nvtx_parts.h"
#include "thread_names.h"

int InitializeInjectionNvtxExtension(struct nvtx_module_info *module);

static void nothing(void) {}

const struct mt_inject_source mt_thread_names_source = {.forked = nothing};

void mt_thread_name_set(uint32_t os_thread, const char *name, size_t length)
{
    (void)os_thread, (void)name, (void)length;
}

enum { SLOTS = 63 };

static intptr_t slots[SLOTS];

/* What the collector answers to the copy of that extension; the slots are empty before. */
static int initialize_extension(uint16_t number, uint16_t compatibility, size_t segment_id,
                                size_t slot_count)
{
    struct nvtx_segment segment = {segment_id, slot_count, slots};
    struct nvtx_module_info module = {.nvtx_version = 3,
                                      .struct_size = sizeof module,
                                      .module = number,
                                      .compatibility = compatibility,
                                      .segment_count = 1,
                                      .segments = &segment};

    memset(slots, 0, sizeof slots);
    return InitializeInjectionNvtxExtension(&module);
}

/* Before each test: a collector that forgot everything and takes NVTX. */
static void forget_everything(void)
{
    mt_nvtx_source.forked();
    recorded_clear();
    recorded_settings = (struct mt_inject_settings){.asked = true, .phases_nvtx = true};
}

#endif
