/* See nvtx_parts.h. */
#include "nvtx_parts.h"

#include <string.h>

#include "collect.h"

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t mt_nvtx_length(const char *text, size_t capacity)
{
    size_t length = text ? strnlen(text, capacity + 1) : 0;

    if (length <= capacity)
        return length;
    for (length = capacity; length > 0 && is_continuation(text[length]); length--)
        ;
    return length;
}

/* Bytes of one character, 0 if it does not fit. */
static size_t encode(uint32_t code, char *out, size_t room)
{
    static const uint8_t leads[] = {0, 0x00, 0xc0, 0xe0, 0xf0};

    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (count > room)
        return 0;
    for (size_t i = count; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(leads[count] | code);
    return count;
}

size_t mt_nvtx_from_wide(const wchar_t *wide, char *out, size_t capacity)
{
    size_t length = 0, added;

    for (; wide && *wide; wide++, length += added) {
        added = encode((uint32_t)*wide, out + length, capacity - length);
        if (!added)
            break;
    }
    return length;
}

static uint32_t intern(struct mt_nvtx_text text)
{
    return mt_collect_name(text.bytes, text.length);
}

/* "domain: message" for a text that is not UTF-8 or lacks its domain. */
static uint32_t compose(uint32_t domain, const struct nvtx_attributes *attributes)
{
    struct mt_nvtx_text prefix = mt_nvtx_domain_prefix(domain);
    char text[MT_MAX_NVTX_TEXT_BYTES];
    size_t room = sizeof text - prefix.length, length;

    memcpy(text, prefix.bytes, prefix.length);
    if (attributes->message_type == NVTX_MESSAGE_IS_WIDE) {
        length = mt_nvtx_from_wide(attributes->message.wide, text + prefix.length, room);
    } else {
        length = mt_nvtx_length(attributes->message.ascii, room);
        memcpy(text + prefix.length, attributes->message.ascii, length);
    }
    return mt_collect_name(text, prefix.length + length);
}

static uint32_t unnamed(uint32_t domain, uint32_t category)
{
    static const char nothing[] = "(unnamed)";
    struct mt_nvtx_text name = mt_nvtx_category(domain, category);
    const struct nvtx_attributes plain = {.message_type = NVTX_MESSAGE_IS_ASCII,
                                          .message = {.ascii = nothing}};

    return name.length ? intern(name) : compose(domain, &plain);
}

static bool is_empty(const struct nvtx_attributes *attributes)
{
    switch (attributes->message_type) {
    case NVTX_MESSAGE_IS_ASCII: return !attributes->message.ascii || !*attributes->message.ascii;
    case NVTX_MESSAGE_IS_WIDE: return !attributes->message.wide || !*attributes->message.wide;
    case NVTX_MESSAGE_IS_REGISTERED: return !attributes->message.registered;
    default: return true;
    }
}

uint32_t mt_nvtx_name(uint32_t domain, const struct nvtx_attributes *attributes)
{
    struct mt_nvtx_text text;

    if (!attributes || attributes->size < offsetof(struct nvtx_attributes, color_type))
        return unnamed(domain, 0);
    if (attributes->size < sizeof *attributes || is_empty(attributes))
        return unnamed(domain, attributes->category);
    if (attributes->message_type == NVTX_MESSAGE_IS_REGISTERED) {
        text = mt_nvtx_string(attributes->message.registered);
        return text.length ? intern(text) : unnamed(domain, attributes->category);
    }
    if (domain || attributes->message_type == NVTX_MESSAGE_IS_WIDE)
        return compose(domain, attributes);
    text.bytes = attributes->message.ascii;
    text.length = mt_nvtx_length(text.bytes, MT_MAX_NVTX_TEXT_BYTES);
    return intern(text);
}
