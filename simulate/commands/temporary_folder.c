#include "temporary_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "outputs.h"
#include "process_memory.h"
#include "temporary_file.h"

bool mt_temporary_folder_take(struct mt_temporary_folder *folder, const char *path)
{
    mt_unfinished_folder_set(mt_outputs_unfinished(), path); /* until there is a copy */
    *folder = (struct mt_temporary_folder){
        mt_memory_text(path), mt_io_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)};
    if (folder->fd >= 0) {
        mt_unfinished_folder_set(mt_outputs_unfinished(), folder->path);
        return true;
    }
    int why = errno;
    mt_unfinished_folder_set(mt_outputs_unfinished(), NULL);
    (void)rmdir(path);
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
    bool is_made = mkdtemp(path.data) && mt_temporary_folder_take(folder, path.data);
    mt_buf_release(&path); /* keeps errno */
    return is_made;
}

void mt_temporary_folder_remove(struct mt_temporary_folder *folder)
{
    struct stat made, named;

    if (!folder->path)
        return;
    mt_folder_empty(folder->fd);
    if (fstat(folder->fd, &made) == 0 && lstat(folder->path, &named) == 0 &&
        made.st_dev == named.st_dev && made.st_ino == named.st_ino)
        (void)rmdir(folder->path); /* fails if it is not empty */
    mt_unfinished_folder_set(mt_outputs_unfinished(), NULL);
    (void)mt_io_close(folder->fd);
    free(folder->path);
    *folder = MT_TEMPORARY_FOLDER_NONE;
}
