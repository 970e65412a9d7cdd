#include "temporary_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "process_memory.h"

bool mt_temporary_folder_take(struct mt_temporary_folder *folder, const char *path)
{
    *folder = (struct mt_temporary_folder){
        mt_memory_text(path), mt_io_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)};
    if (folder->path && folder->fd >= 0)
        return true;
    int why = folder->path ? errno : ENOMEM;
    (void)rmdir(path);
    if (folder->fd >= 0)
        (void)mt_io_close(folder->fd);
    free(folder->path);
    *folder = MT_TEMPORARY_FOLDER_NONE;
    errno = why;
    return false;
}

bool mt_temporary_folder_new(struct mt_temporary_folder *folder, const char *name)
{
    const char *base = getenv("TMPDIR");
    struct mt_buf path = {0};

    *folder = MT_TEMPORARY_FOLDER_NONE;
    mt_buf_printf(&path, "%s/%s-XXXXXX", base && *base ? base : "/tmp", name);
    errno = ENOMEM;
    bool is_made = path.data && mkdtemp(path.data) && mt_temporary_folder_take(folder, path.data);
    mt_buf_release(&path); /* keeps errno */
    return is_made;
}

static void remove_files(int fd)
{
    int copy = mt_io_open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *open = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;

    while (open && (entry = readdir(open)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(fd, entry->d_name, 0);
    if (open)
        (void)closedir(open);
    else if (copy >= 0)
        (void)mt_io_close(copy);
}

void mt_temporary_folder_remove(struct mt_temporary_folder *folder)
{
    struct stat made, named;

    if (!folder->path)
        return;
    remove_files(folder->fd);
    if (fstat(folder->fd, &made) == 0 && lstat(folder->path, &named) == 0 &&
        made.st_dev == named.st_dev && made.st_ino == named.st_ino)
        (void)rmdir(folder->path); /* fails if it is not empty */
    (void)mt_io_close(folder->fd);
    free(folder->path);
    *folder = MT_TEMPORARY_FOLDER_NONE;
}
