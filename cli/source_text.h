/* Lines of source files. A trace names files of the machine that it was recorded on, and its
 * author may name any file of this machine. So only regular files below the current folder, or
 * below a folder that the user named, are read. */
#ifndef MT_CLI_SOURCE_TEXT_H
#define MT_CLI_SOURCE_TEXT_H

#include <stdint.h>

#include "buf.h"
#include "cli.h"
#include "map.h"

/* The folders that may be read, and the files that were not. Zeroed memory is ready and allows
 * the current folder. */
struct mt_source_files {
    struct mt_text_list roots; /* further folders */
    struct mt_strings unread;  /* paths, each printed once */
    bool quiet;
};

/* One file at a time. Zeroed memory is ready. */
struct mt_source_text {
    struct mt_buf content;
    size_t at;     /* where line number `line` begins */
    uint32_t line; /* 0 = nothing is open */
};

/* Opens the file of that path or, if it cannot be read, the file below a root with the longest
 * suffix of `path`: train/loop.py, then loop.py. Links are resolved before a file is opened.
 * Returns false if there is none; the first few failures are printed on stderr with the reason.
 * At most 16 MiB. */
bool mt_source_text_open(struct mt_source_text *text, struct mt_source_files *files,
                         const char *path);

/* Reads a line without surrounding space into `text`, valid until the next call; *length is 0 if
 * there is no such line. Request lines in ascending order. */
const char *mt_source_text_line(struct mt_source_text *text, uint32_t line, size_t *length);

/* The last part of a path. */
const char *mt_source_text_name(const char *path);

void mt_source_text_release(struct mt_source_text *text);

/* Prints how many more files were not read, and releases the list. */
void mt_source_files_end(struct mt_source_files *files);

#endif
