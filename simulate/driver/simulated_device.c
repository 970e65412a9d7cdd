#include "simulated_device.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cards.h"

/* Attributes that the table of cards does not have, with the values of an H200
 * (fixtures/device_attributes/h200.txt). No size in PyTorch depends on them. */
enum { BUS_BITS = 6016, CLOCK_KHZ = 1980000, MEMORY_CLOCK_KHZ = 3201000 };

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". */
static int blocks_per_multiprocessor(const struct mt_card *card)
{
    if (card->capability_major == 7)
        return card->capability_minor == 0 ? 32 : 16;
    if (card->capability_major == 8 && card->capability_minor > 0)
        return card->capability_minor == 6 ? 16 : 24;
    return card->capability_major == 12 ? 24 : 32;
}

static struct sim_card describe(const struct mt_card *card)
{
    return (struct sim_card){
        .name = card->driver_name,
        .table_name = card->name,
        .major = (int)card->capability_major,
        .minor = (int)card->capability_minor,
        .multiprocessors = (int)card->multiprocessors,
        .threads_per_multiprocessor = (int)card->threads_per_multiprocessor,
        .blocks_per_multiprocessor = blocks_per_multiprocessor(card),
        .shared_bytes_per_multiprocessor = card->shared_bytes_per_multiprocessor,
        .shared_bytes_per_block_optin = card->shared_bytes_per_block,
        .l2_bytes = (int)card->l2_bytes,
        /* H200: 39,321,600 of 62,914,560; devices before 8.0 have no persisting cache */
        .l2_persisting_bytes = card->capability_major >= 8 ? (int)(card->l2_bytes / 8 * 5) : 0,
        .bus_bits = BUS_BITS,
        .clock_khz = CLOCK_KHZ,
        .memory_clock_khz = MEMORY_CLOCK_KHZ,
    };
}

static struct sim_card model;

static void choose(void)
{
    const char *word = getenv("MEMTRACE_SIMULATED_DEVICE"), *near;
    const struct mt_card *card = mt_card_find(word && *word ? word : "H200", &near);

    if (!card)
        card = mt_card_find("H200", &near);
    model = describe(card);
}

const struct sim_card *sim_card(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, choose);
    return &model;
}

/* GROUP_RANK is the number of the node in torchrun. */
void sim_uuid(int device, unsigned char uuid[SIM_UUID_BYTES])
{
    const char *node = getenv("MEMTRACE_DRY_RUN_ALONE") ? getenv("GROUP_RANK") : NULL;
    unsigned long number = node ? strtoul(node, NULL, 10) : 0;

    memset(uuid, 0, SIM_UUID_BYTES);
    uuid[0] = 0x5d;
    for (int i = 0; i < 4; i++)
        uuid[4 + i] = (unsigned char)(number >> (24 - 8 * i));
    uuid[15] = (unsigned char)device;
}

/* Units for 64-bit numbers: half as many, or the few of cards for games. */
static int single_to_double_ratio(const struct sim_card *card)
{
    if (card->minor == 0 && card->major < 12)
        return 2;
    return card->major == 7 ? 32 : 64;
}

bool sim_attribute(int number, int device, int *value)
{
    const struct sim_card *card = sim_card();

    switch (number) {
#define ATTRIBUTE(number, name, answer)                                                            \
    case number:                                                                                   \
        *value = (int)(answer);                                                                    \
        return true;
#include "device_attributes.def"
#undef ATTRIBUTE
    default: return false;
    }
}

int sim_attribute_of(enum sim_attribute attribute, int device)
{
    int value = 0;

    (void)sim_attribute((int)attribute, device, &value);
    return value;
}
