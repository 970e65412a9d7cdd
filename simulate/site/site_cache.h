/* The folder of all sites. Each site is a folder in it, named by its key. Several processes may use
 * the cache at the same time: a site is built under another name, and renamed when it is complete.
 *
 * Everything is checked and used through descriptors, so no name is followed that changed in
 * between. Nothing is removed except the files that memtrace makes, in folders of this user. */
#ifndef MT_SITE_CACHE_H
#define MT_SITE_CACHE_H

#include <stdbool.h>

#include "safe_path.h"

enum {
    MT_SITES_KEPT = 8,
    MT_SITE_MIN_AGE_S = 24 * 60 * 60,
    MT_SITE_KEY_DIGITS = 32 /* digits in the name of a site, 0-9 and a-f */
};

/* The file in a site that is written last. */
#define MT_SITE_FACTS "facts"

/* A folder beside the sites that is being filled. */
struct mt_cache_making {
    int fd;
    char name[32];
};

/* Creates an empty one. */
enum mt_status mt_cache_begin(const struct mt_cache *cache, struct mt_cache_making *making,
                              struct mt_error *error) MT_MUST_USE;

/* Renames it to `key` and closes it. If another process has completed this site first, keeps that
 * site and abandons this one. */
enum mt_status mt_cache_finish(const struct mt_cache *cache, struct mt_cache_making *making,
                               const char *key, struct mt_error *error) MT_MUST_USE;

/* Removes and closes it. */
void mt_cache_abandon(const struct mt_cache *cache, struct mt_cache_making *making);

/* Opens a site, or returns -1 if there is none, or if other users can have written to it. */
int mt_cache_site_open(const struct mt_cache *cache, const char *key);

/* Removes a site or unfinished folder of this user: the files that memtrace makes there, then the
 * folder if it is empty. If the name is a symbolic link, removes the link. */
void mt_cache_remove(const struct mt_cache *cache, const char *name);

/* Marks the site `key` as used now. Removes the least recently used sites beyond MT_SITES_KEPT, and
 * folders that killed processes left, if they have not been used for MT_SITE_MIN_AGE_S. */
void mt_cache_tidy(const struct mt_cache *cache, const char *key);

#endif
