/* The folder of all sites. Each site is a folder in it, named by its key. Several processes may use
 * the cache at the same time: a site is built under another name, and renamed when it is
 * complete. */
#ifndef MT_SITE_CACHE_H
#define MT_SITE_CACHE_H

#include <limits.h>
#include <stdbool.h>

#include "status.h"

enum {
    MT_SITES_KEPT = 8,
    MT_SITE_MIN_AGE_S = 24 * 60 * 60,
    MT_SITE_KEY_DIGITS = 32 /* digits in the name of a site, 0-9 and a-f */
};

/* Creates the folder and sets `folder` to its path: `wanted`, or the first writable one of
 * $XDG_CACHE_HOME/memtrace, ~/.cache/memtrace, and memtrace-UID in $TMPDIR (/tmp), which only its
 * owner may enter. The group loses its permission to write there. Skips paths with a space, a colon
 * or a semicolon, which cannot be in LD_PRELOAD. MT_ERR_OUTPUT: none is usable; *error has the
 * reason for the first one. */
enum mt_status mt_cache_folder(const char *wanted, char folder[PATH_MAX],
                               struct mt_error *error) MT_MUST_USE;

/* Creates an empty folder beside the sites. */
enum mt_status mt_cache_begin(const char *folder, char made[PATH_MAX],
                              struct mt_error *error) MT_MUST_USE;

/* Renames `made` to `site`. If another process has completed this site first, keeps that site and
 * removes `made`. */
enum mt_status mt_cache_finish(const char *made, const char *site,
                               struct mt_error *error) MT_MUST_USE;

/* Returns true if no other user can have written libraries to this site. */
bool mt_cache_site_is_ours(const char *site);

/* Removes a folder and its files, as far as possible. */
void mt_cache_remove(const char *folder);

/* Marks `site` as used now. Removes the least recently used sites beyond MT_SITES_KEPT, and
 * folders that killed processes left, if they have not been used for MT_SITE_MIN_AGE_S. */
void mt_cache_tidy(const char *folder, const char *site);

#endif
