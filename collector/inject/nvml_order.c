/* See nvml_order.h. */
#include "nvml_order.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct answer {
    const struct mt_nvml_device *devices;
    uint32_t count; /* number of devices */
    struct mt_nvml_place *places;
    uint32_t place_count;
    const char *why;
};

/* Devices of equal speed stay in the order of the bus. */
static bool is_bus_order(const struct answer *answer, const char *order)
{
    if (order && !strcmp(order, "PCI_BUS_ID"))
        return true;
    for (uint32_t i = 1; i < answer->count; i++)
        if (strcmp(answer->devices[i].name, answer->devices[0].name))
            return false;
    return true;
}

/* Returns false if the device is already in the list. */
static bool add(struct answer *answer, uint32_t index, const char *instance, size_t length)
{
    struct mt_nvml_place *place;

    for (uint32_t i = 0; i < answer->place_count; i++)
        if (answer->places[i].index == index && !instance)
            return false;
    if (answer->place_count == MT_NVML_DEVICES)
        return true;
    place = &answer->places[answer->place_count++];
    *place = (struct mt_nvml_place){.index = index};
    if (instance)
        memcpy(place->instance, instance,
               length < sizeof place->instance ? length : sizeof place->instance - 1);
    else if (answer->devices[index].split)
        answer->why = "a device is split into instances, and CUDA_VISIBLE_DEVICES does not say "
                      "which one";
    return true;
}

/* Returns the device whose UUID begins with the text, UINT32_MAX if there is none or several. */
static uint32_t find_uuid(const struct answer *answer, const char *text, size_t length)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t i = 0; i < answer->count; i++)
        if (!strncmp(answer->devices[i].uuid, text, length)) {
            if (found != UINT32_MAX)
                return UINT32_MAX;
            found = i;
        }
    return found;
}

static uint32_t find_number(const char *text, size_t length)
{
    char digits[16], *end;
    unsigned long number;

    if (!length || length >= sizeof digits)
        return UINT32_MAX;
    memcpy(digits, text, length);
    digits[length] = 0;
    number = strtoul(digits, &end, 10);
    return *end || digits[0] == '-' || number >= UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* Adds one item of the list. Returns false at the first invalid item; the rest is ignored. */
static bool add_item(struct answer *answer, const char *item, size_t length, bool bus_order)
{
    uint32_t index;

    if (length > 4 && !strncmp(item, "MIG-", 4))
        return add(answer, UINT32_MAX, item, length);
    if (length > 4 && !strncmp(item, "GPU-", 4)) {
        index = find_uuid(answer, item, length);
        return index < answer->count && add(answer, index, NULL, 0);
    }
    index = find_number(item, length);
    if (index >= answer->count)
        return false;
    if (!bus_order)
        answer->why = "the devices differ, and CUDA_DEVICE_ORDER is not PCI_BUS_ID";
    return add(answer, index, NULL, 0);
}

static void read_list(struct answer *answer, const char *list, bool bus_order)
{
    for (size_t length;; list += length + 1) {
        size_t item;
        list += strspn(list, " \t");
        length = strcspn(list, ",");
        for (item = length; item && (list[item - 1] == ' ' || list[item - 1] == '\t'); item--)
            ;
        if (!add_item(answer, list, item, bus_order) || !list[length])
            return;
    }
}

uint32_t mt_nvml_order(const struct mt_nvml_device *devices, uint32_t count, const char *visible,
                       const char *order, struct mt_nvml_place places[MT_NVML_DEVICES],
                       const char **why)
{
    struct answer answer = {.devices = devices, .count = count, .places = places};
    bool bus_order = is_bus_order(&answer, order);

    if (visible)
        read_list(&answer, visible, bus_order);
    for (uint32_t i = 0; i < count && !visible; i++)
        add(&answer, i, NULL, 0);
    if (!visible && !bus_order && !answer.why)
        answer.why = "the devices differ, and CUDA_DEVICE_ORDER is not PCI_BUS_ID";
    *why = answer.why;
    return answer.why ? 0 : answer.place_count;
}
