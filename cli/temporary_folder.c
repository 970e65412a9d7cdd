#include "temporary_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"

char *mt_temporary_folder_new(const char *name)
{
    const char *base = getenv("TMPDIR");
    struct mt_buf path = {0};
    char *folder = NULL;

    mt_buf_printf(&path, "%s/%s-XXXXXX", base && *base ? base : "/tmp", name);
    errno = ENOMEM;
    if (path.data && !path.failed && mkdtemp(path.data)) {
        folder = strdup(path.data);
        if (!folder) {
            (void)rmdir(path.data);
            errno = ENOMEM;
        }
    }
    mt_buf_release(&path);
    return folder;
}

void mt_temporary_folder_remove(char *folder)
{
    DIR *open = folder ? opendir(folder) : NULL;
    const struct dirent *entry;

    while (open && (entry = readdir(open)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(open), entry->d_name, 0);
    if (open)
        closedir(open);
    if (folder)
        rmdir(folder);
    free(folder);
}
