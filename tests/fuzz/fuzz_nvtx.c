/* Names of NVTX events: hostile attributes, narrow and wide texts. What NVTX's
 * other files and the collector do is replaced by the functions below. */
#include "fuzz.h"
#include "nvtx_parts.h"

#include "collect.h"

static struct mt_nvtx_text prefix;

uint32_t mt_collect_name(const char *text, size_t length)
{
    uint32_t hash = 1;

    FUZZ_CHECK(length <= MT_MAX_NVTX_TEXT_BYTES);
    for (size_t i = 0; i < length; i++) /* touches every byte */
        hash = hash * 31 + (unsigned char)text[i];
    return hash | 1;
}

struct mt_nvtx_text mt_nvtx_domain_prefix(uint32_t domain)
{
    return domain ? prefix : (struct mt_nvtx_text){"", 0};
}

struct mt_nvtx_text mt_nvtx_string(void *handle)
{
    return handle ? prefix : (struct mt_nvtx_text){"", 0};
}

struct mt_nvtx_text mt_nvtx_category(uint32_t domain, uint32_t category)
{
    return domain && category ? prefix : (struct mt_nvtx_text){"", 0};
}

static wchar_t *wide_of(const char *text, size_t length)
{
    wchar_t *wide = calloc(length / 2 + 2, sizeof *wide);

    FUZZ_CHECK(wide);
    for (size_t i = 0; i + 1 < length; i += 2) /* also beyond Unicode, and surrogates */
        wide[i / 2] = (wchar_t)((unsigned char)text[i] << 13 | (unsigned char)text[i + 1]);
    return wide;
}

static bool is_utf8_cut_well(const char *text, size_t length)
{
    return length == 0 || length > MT_MAX_NVTX_TEXT_BYTES ||
           ((unsigned char)text[length - 1] & 0xC0) != 0xC0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct nvtx_attributes attributes = {0};
    unsigned shape = (unsigned)fuzz_number(&input, 1);
    size_t prefix_bytes = fuzz_number(&input, 1);
    char *text = fuzz_text(input.at, input.left), narrow[64], name[140];
    wchar_t *wide = wide_of(text, input.left);

    memset(name, 'd', sizeof name);
    prefix = (struct mt_nvtx_text){name, prefix_bytes % sizeof name};
    attributes.size = (uint16_t)(shape & 1 ? sizeof attributes : fuzz_number(&input, 1));
    attributes.category = shape >> 1 & 1;
    attributes.message_type = (int32_t)(shape >> 2 & 3);
    if (attributes.message_type == NVTX_MESSAGE_IS_WIDE)
        attributes.message.wide = wide;
    else
        attributes.message.ascii = text;
    (void)mt_nvtx_name(shape >> 4 & 1, &attributes);
    size_t length = mt_nvtx_from_wide(wide, narrow, sizeof narrow);
    FUZZ_CHECK(length <= sizeof narrow && is_utf8_cut_well(narrow, length));
    FUZZ_CHECK(mt_nvtx_length(text, 32) <= 32);
    free(wide);
    free(text);
    return 0;
}
