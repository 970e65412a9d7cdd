/* `analyze --open`: shows report.html in a browser. */
#ifndef MT_CLI_OPEN_PAGE_H
#define MT_CLI_OPEN_PAGE_H

#include "buf.h"

/* Appends the folder for the page if there is no -o: report-NAME in the user's cache folder, where
 * NAME is the file name of the trace. The page of another trace with the same file name replaces an
 * earlier page. Returns -1, or the exit code after an error message. */
int mt_open_page_add_folder(struct mt_buf *folder, const char *trace);

/* Starts a browser for FOLDER/report.html and does not wait for it. The browser is $BROWSER,
 * otherwise xdg-open, open or wslview if there is a display. Its argument is an absolute path, and
 * no shell interprets it. The browser inherits the environment, but not the terminal, descriptors
 * or ignored signals. Prints the path, or why nothing was opened. A failure is not an error of the
 * command. */
void mt_open_page(const char *folder);

#endif
