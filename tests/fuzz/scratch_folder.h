/* A folder in memory, if the machine has such, for targets whose code wants paths. It goes with the
 * process. */
#ifndef MT_TESTS_SCRATCH_FOLDER_H
#define MT_TESTS_SCRATCH_FOLDER_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

static char scratch_path[64];

static int scratch_remove_one(const char *path, const struct stat *facts, int type,
                              struct FTW *place)
{
    (void)facts;
    (void)type;
    (void)place;
    return remove(path);
}

static void scratch_remove(void)
{
    (void)nftw(scratch_path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *scratch_folder(void)
{
    if (!scratch_path[0]) {
        snprintf(scratch_path, sizeof scratch_path, "%s/memtrace-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(scratch_path));
        atexit(scratch_remove);
    }
    return scratch_path;
}

#endif
