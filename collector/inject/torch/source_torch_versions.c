/* From the binaries of releases 2.2 to 2.15, the first and the last of each minor version: places
 * come from their compiled headers, and the symbol tables name the function at each place. All of
 * them have the same numbers of actions and the same trace entry:
 *     0 int action, 4 device (int8, in 2.2 int), 8 size_t addr, 16 context,
 *     32 stream, 40 size_t size, 48 two words of the pool (since 2.8)
 * tests/inject/torch_places.py finds the row of a release. */
#include <stdio.h>
#include <string.h>

#include "io.h"
#include "torch_parts.h"

enum { FILE_BYTES = 4096 };

static const struct mt_torch_version known_versions[] = {
    /*  functions, init, empty_cache, set_fraction, attach_tracker, has_pool */
    {2, 2, 32, 7, 10, 9, 26, false},  {2, 3, 34, 9, 12, 11, 28, false},
    {2, 4, 34, 9, 12, 11, 28, false}, {2, 5, 36, 9, 12, 11, 30, false},
    {2, 6, 41, 9, 13, 12, 35, false}, {2, 7, 41, 9, 13, 12, 35, false},
    {2, 8, 44, 9, 13, 12, 38, true},  {2, 9, 45, 15, 7, 17, 39, true},
    {2, 10, 50, 16, 7, 18, 44, true}, {2, 11, 50, 16, 7, 18, 44, true},
    {2, 12, 52, 16, 7, 18, 46, true}, {2, 13, 55, 16, 7, 18, 48, true},
    {2, 14, 57, 16, 7, 18, 50, true}, {2, 15, 57, 16, 7, 18, 50, true},
};

/* Reads a number of at most four digits and the dot after it. */
static bool take_number(const char **text, unsigned *number, bool dot)
{
    const char *at = *text;

    for (*number = 0; *at >= '0' && *at <= '9' && at - *text < 4; at++)
        *number = *number * 10 + (unsigned)(*at - '0');
    if (at == *text || (dot && *at != '.'))
        return false;
    *text = at + dot;
    return true;
}

/* "2.11.0", "2.11.0+cu130" and "2.11.0.post2" are releases; "2.11.0a0+git1234" is not. */
static bool parse(const char *text, unsigned *major, unsigned *minor, bool *release)
{
    unsigned patch;

    if (!take_number(&text, major, true) || !take_number(&text, minor, true) ||
        !take_number(&text, &patch, false))
        return false;
    *release = *text == '\0' || *text == '+' || strncmp(text, ".post", 5) == 0;
    return true;
}

const struct mt_torch_version *mt_torch_version_find(const char *text)
{
    unsigned major, minor;
    bool release;

    if (!parse(text, &major, &minor, &release) || !release)
        return NULL;
    for (size_t i = 0; i < sizeof known_versions / sizeof *known_versions; i++)
        if (known_versions[i].major == major && known_versions[i].minor == minor)
            return &known_versions[i];
    return NULL;
}

bool mt_torch_version_has_scopes(const char *text)
{
    unsigned major, minor;
    bool release;

    return parse(text, &major, &minor, &release) &&
           ((major == 1 && minor == 13) || (major == 2 && minor <= 15));
}

bool mt_torch_version_has_pool(const char *text)
{
    unsigned major, minor;
    bool release;

    return !parse(text, &major, &minor, &release) || major != 2 || minor >= 8;
}

/* The path of a file relative to the folder of a library. */
static bool beside(const char *library_path, const char *relative, char *path, size_t path_bytes)
{
    const char *slash = strrchr(library_path, '/');

    if (!slash)
        return false;
    int length =
        snprintf(path, path_bytes, "%.*s/%s", (int)(slash - library_path), library_path, relative);
    return length > 0 && (size_t)length < path_bytes;
}

static bool copy_until(const char *from, const char *stops, char *text, size_t text_bytes)
{
    size_t length = strcspn(from, stops);

    if (!length || length >= text_bytes)
        return false;
    memcpy(text, from, length);
    text[length] = '\0';
    return true;
}

/* The Python package has __version__ = '...' in torch/version.py; the C++ distribution has
 * libtorch/build-version. */
bool mt_torch_version_read(const char *library_path, char *text, size_t text_bytes)
{
    char path[4096], content[FILE_BYTES];

    *text = '\0';
    if (beside(library_path, "../version.py", path, sizeof path) &&
        mt_io_read_text(path, content, sizeof content)) {
        const char *at = strstr(content, "__version__ = ");
        if (at && (at[14] == '\'' || at[14] == '"'))
            return copy_until(at + 15, "'\"\r\n", text, text_bytes);
    }
    if (beside(library_path, "../build-version", path, sizeof path) &&
        mt_io_read_text(path, content, sizeof content))
        return copy_until(content, " \r\n", text, text_bytes);
    return false;
}
