/* `analyze --open`: shows report.html in a browser. */
#ifndef MT_CLI_OPEN_PAGE_H
#define MT_CLI_OPEN_PAGE_H

#include "buf.h"

/* Appends the folder for a page without -o: report-NAME in the user's cache folder, where NAME is
 * the file name of the trace. A later report of a trace of the same name replaces it. Returns -1,
 * or the exit code after an error message. */
int mt_add_page_folder(struct mt_buf *folder, const char *trace);

/* Starts a browser for FOLDER/report.html and does not wait for it: $BROWSER, otherwise xdg-open or
 * open if there is a display. No shell reads the path. Prints the path, or why nothing was opened;
 * neither is an error of the command. */
void mt_open_page(const char *folder);

#endif
