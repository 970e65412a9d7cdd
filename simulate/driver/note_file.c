#include "note_file.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return false;
    }
    bool is_written = fputs(text, file) >= 0;
    return fclose(file) == 0 && is_written;
}

void sim_note_write(const char *subject, const char *text)
{
    const char *base = getenv("MEMTRACE_DRY_RUN_NOTES");
    char path[PATH_MAX], half[PATH_MAX + 8];
    int length =
        base == NULL ? -1 : snprintf(path, sizeof path, "%s.%s.%ld", base, subject, (long)getpid());
    if (length <= 0 || length >= (int)sizeof path) {
        return;
    }
    /* The reader ignores this name. The file stays if the process is killed here. */
    snprintf(half, sizeof half, "%s.half", path);
    if (!write_to(half, text) || rename(half, path) != 0) {
        unlink(half);
        /* An earlier note would pass for this one. The reader reports an empty one. */
        (void)write_to(path, "");
    }
}
