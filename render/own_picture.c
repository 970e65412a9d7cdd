#include "own_picture.h"

#include <stdint.h>
#include <string.h>

/* The attributes that mt_svg_write puts on its root element, in this order. Other programs write
 * none of "-title NAME-desc" there, and an editor that saves the picture writes its own. */
bool mt_svg_is_own(const void *start, size_t length)
{
    static const char head[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ";
    static const char attributes[] = " role=\"img\" aria-labelledby=\"";
    const char *line_end, *text = start;
    char line[512];
    size_t bytes;

    if (length < sizeof head - 1 || memcmp(text, head, sizeof head - 1) != 0)
        return false;
    line_end = memchr(text, '\n', length);
    bytes = line_end ? (size_t)(line_end - text) : length;
    if (bytes >= sizeof line)
        return false;
    memcpy(line, text, bytes);
    line[bytes] = '\0';
    return strstr(line, attributes) && strstr(line, "-desc\" font-family=\"Inter,system-ui,");
}

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A tEXt chunk before the pixels: "Software", NUL, "memtrace". */
bool mt_png_is_own(const void *start, size_t length)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const char software[] = "tEXtSoftware\0memtrace";
    const uint8_t *bytes = start;
    size_t at = sizeof magic;

    if (length < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return false;
    while (length - at >= 12 && memcmp(bytes + at + 4, "IDAT", 4) != 0) {
        uint32_t size = big_endian(bytes + at);

        if (size > length - at - 12)
            return false;
        if (size == sizeof software - 1 - 4 &&
            memcmp(bytes + at + 4, software, sizeof software - 1) == 0)
            return true;
        at += size + 12;
    }
    return false;
}
