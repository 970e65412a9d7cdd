/* Reads lines of source files. A trace has names of files on the machine where it was recorded, and
 * a malicious trace can name any file of this machine. So only regular files below the current
 * folder, or below a folder that the user named, are read. */
#ifndef MT_CLI_SOURCE_TEXT_H
#define MT_CLI_SOURCE_TEXT_H

#include <stdint.h>

#include "buf.h"
#include "cli.h"
#include "map.h"

/* The folders that may be read, and the files that could not be read. Zeroed memory allows only the
 * current folder. */
struct mt_source_files {
    struct mt_text_list roots; /* folders in addition to the current one */
    struct mt_strings unread;  /* paths of files that could not be read; each is printed once */
    bool quiet;
};

/* An open file. Zeroed memory has no file open. */
struct mt_source_text {
    struct mt_buf content;
    size_t at;     /* offset at which line number `line` begins */
    uint32_t line; /* 0 = nothing is open */
};

/* Opens the file at `path`. If it cannot be read, opens the file below a root with the longest
 * suffix of `path`: train/loop.py, then loop.py. Checks the folder of a file after links are
 * resolved. Returns false if there is no readable file of at most 16 MiB, and prints the first few
 * failures with their reasons to stderr. */
bool mt_source_text_open(struct mt_source_text *text, struct mt_source_files *files,
                         const char *path);

/* Returns a line without surrounding blanks, which is valid until the next call. Sets *length to
 * its length, or to 0 if there is no such line. Request lines in ascending order. */
const char *mt_source_text_line(struct mt_source_text *text, uint32_t line, size_t *length);

void mt_source_text_release(struct mt_source_text *text);

/* Prints how many more files could not be read, and releases the list. */
void mt_source_files_end(struct mt_source_files *files);

#endif
