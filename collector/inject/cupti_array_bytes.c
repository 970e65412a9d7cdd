/* Bytes of the texels of an array. Tiling, padding and alignment are unpublished details of the
 * driver, so this is a lower bound. */
#include "cupti_array_bytes.h"

#include <stdbool.h>

/* Bits of one channel of one texel. */
static uint64_t channel_bits(uint32_t format)
{
    switch (format) {
    case 0x01: /* unsigned and signed 8 bits */
    case 0x08: return 8;
    case 0x02: /* ... 16 bits, half */
    case 0x09:
    case 0x10: return 16;
    case 0x03: /* ... 32 bits, float */
    case 0x0a:
    case 0x20: return 32;
    default: return 0;
    }
}

/* Bits of one texel of formats that name their channels; 8 if the layout is unknown. */
static uint64_t texel_bits(uint32_t format)
{
    switch (format) {
    case 0xc0: /* normalized: 8 bits x 1, 2, 4 */
    case 0xc6: return 8;
    case 0xc1:
    case 0xc7:
    case 0xc3: /* 16 bits x 1, 2, 4 */
    case 0xc9: return 16;
    case 0xc2:
    case 0xc8:
    case 0xc4:
    case 0xca:
    case 0x50: return 32; /* 10, 10, 10, 2 */
    case 0xc5:
    case 0xcb: return 64;
    case 0x91: /* block compressed: BC1 and BC4 have 4 bits per texel, others 8 */
    case 0x92:
    case 0x97:
    case 0x98: return 4;
    default: return 8;
    }
}

static bool is_block_compressed(uint32_t format)
{
    return format >= 0x91 && format <= 0x9e;
}

static uint64_t at_least_one(uint64_t count)
{
    return count ? count : 1;
}

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX / 16 : product;
}

static uint64_t level_bytes(const uint64_t extent[3], uint64_t bits)
{
    uint64_t texels = saturating_product(saturating_product(extent[0], extent[1]), extent[2]);
    return saturating_product(texels, bits) / 8;
}

uint64_t mt_cupti_array_bytes(const struct mt_cu_array3d_descriptor *array, uint32_t levels)
{
    if (!array || !array->Width)
        return 0;
    uint64_t bits = saturating_product(channel_bits(array->Format), array->NumChannels), bytes = 0;
    if (!bits)
        bits = texel_bits(array->Format);
    uint64_t extent[3] = {array->Width, at_least_one(array->Height), at_least_one(array->Depth)};
    bool layered = array->Flags & MT_CU_ARRAY_LAYERED;
    for (uint32_t level = 0; level < levels && level < 32; level++) {
        uint64_t whole[3] = {extent[0], extent[1], extent[2]};
        for (int i = 0; is_block_compressed(array->Format) && i < 2; i++)
            whole[i] = (whole[i] + 3) / 4 * 4;
        bytes += level_bytes(whole, bits);
        for (int i = 0; i < (layered ? 2 : 3); i++)
            extent[i] = at_least_one(extent[i] / 2);
    }
    return bytes;
}
