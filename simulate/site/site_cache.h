/* The folder in which sites are kept, one folder each, by key. Processes may work in it at once: a
 * site is made under another name and renamed when it is complete. */
#ifndef MT_SITE_CACHE_H
#define MT_SITE_CACHE_H

#include <limits.h>
#include <stdbool.h>

#include "status.h"

enum {
    MT_SITES_KEPT = 8,
    MT_SITE_MIN_AGE_S = 24 * 60 * 60,
    MT_SITE_KEY_DIGITS = 32 /* of the name of a site, 0-9 and a-f */
};

/* Makes the folder and returns it: `wanted`, or the first that can be written of
 * $XDG_CACHE_HOME/memtrace, ~/.cache/memtrace and memtrace-UID in $TMPDIR (/tmp), which only its
 * owner may enter. The group loses its permission to write there. Paths with a space, a colon or a
 * semicolon are passed over: LD_PRELOAD cannot hold them. MT_ERR_OUTPUT and why not the first of
 * them. */
enum mt_status mt_cache_folder(const char *wanted, char folder[PATH_MAX],
                               struct mt_error *error) MT_MUST_USE;

/* A new empty folder beside the sites. */
enum mt_status mt_cache_begin(const char *folder, char made[PATH_MAX],
                              struct mt_error *error) MT_MUST_USE;

/* Puts it under its name. Another process may have been faster: then its site stays, this one is
 * removed. */
enum mt_status mt_cache_finish(const char *made, const char *site,
                               struct mt_error *error) MT_MUST_USE;

/* Whether nobody but its owner can have put libraries into this site. */
bool mt_cache_site_is_ours(const char *site);

/* Removes a folder of files, as far as it can. */
void mt_cache_remove(const char *folder);

/* Notes that a site is in use, and removes those sites used longest ago beyond MT_SITES_KEPT, and
 * what killed processes left, if they were not in use for MT_SITE_MIN_AGE_S. */
void mt_cache_tidy(const char *folder, const char *site);

#endif
