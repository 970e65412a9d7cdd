#include "note_file.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return false;
    bool is_written = fputs(text, file) >= 0;
    return fclose(file) == 0 && is_written;
}

void sim_note_write(const char *subject, const char *text)
{
    const char *base = getenv("MEMTRACE_DRY_RUN_NOTES");
    char path[PATH_MAX], half[PATH_MAX + 8];
    int length =
        base == NULL ? -1 : snprintf(path, sizeof path, "%s.%s.%ld", base, subject, (long)getpid());
    if (length <= 0 || length >= (int)sizeof path)
        return;
    /* The reader ignores this name. The file stays if the process is killed here. */
    snprintf(half, sizeof half, "%s.half", path);
    if (!write_to(half, text) || rename(half, path) != 0) {
        unlink(half);
        /* An earlier note would pass for this one. The reader reports an empty one. */
        (void)write_to(path, "");
    }
}

static void write_count(struct sim_count *count)
{
    char text[160];
    snprintf(text, sizeof text, "{\"version\": 1, \"pid\": %ld, \"%s\": {\"undecided\": %llu}}\n",
             (long)getpid(), count->subject, (unsigned long long)count->count);
    sim_note_write(count->subject, text);
    count->noted = count->count;
}

void sim_count_add(struct sim_count *count, uint64_t more)
{
    if (more == 0)
        return;
    if (count->pid != getpid()) {
        count->pid = getpid();
        count->count = count->noted = 0;
    }
    count->count += more;
    if (count->count / 2 >= count->noted)
        write_count(count);
}

void sim_count_end(struct sim_count *count)
{
    if (count->count > count->noted && count->pid == getpid())
        write_count(count);
}
