/* See thread_names.h. Names are stored in the tape by OS id. The drain knows which thread has
 * it. */
#include "thread_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collect.h"
#include "grow.h"
#include "intern.h"
#include "io.h"
#include "lock.h"
#include "map.h"
#include "monotonic_clock.h"

enum {
    COMM_BYTES = 16,   /* in the kernel */
    NAME_BYTES = 256,  /* of a name that was set explicitly */
    MAX_THREADS = 4096 /* examined, or waiting to be recorded, in one pass */
};

#define PASS_NS UINT64_C(2000000000) /* between two passes over all threads: about 5 us each */

struct known {
    char name[COMM_BYTES]; /* last name */
    bool given;            /* set explicitly: not examined any more */
};

struct given {
    uint32_t os_thread;
    size_t length;
    char name[NAME_BYTES];
};

static struct {
    /* Used only by the writer thread. */
    struct known *known;
    size_t count, capacity;
    struct mt_map by_thread; /* OS id -> index in known */
    uint64_t next_pass_ns;
    nlink_t links;
    dev_t proc; /* the file system */

    pthread_mutex_t lock; /* a leaf lock: guards the fields below */
    struct given *given;
    size_t given_count, given_capacity;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void define(uint64_t which, uint32_t os_thread, const char *name, size_t length)
{
    struct {
        uint64_t thread, os_thread;
        char name[NAME_BYTES];
    } definition = {.thread = which, .os_thread = os_thread};

    memcpy(definition.name, name, length);
    mt_define(MT_DEFINE_THREAD, &definition, 2 * sizeof(uint64_t) + length);
}

static struct known *find(uint32_t os_thread)
{
    uint32_t index = mt_map_get(&names.by_thread, os_thread);

    if (index != MT_MAP_NONE)
        return &names.known[index];
    if ((names.count == names.capacity &&
         mt_grow(&names.known, &names.capacity, names.count + 1, sizeof *names.known)) ||
        mt_map_set(&names.by_thread, os_thread, (uint32_t)names.count))
        return NULL;
    names.known[names.count] = (struct known){0};
    return &names.known[names.count++];
}

void mt_thread_name_set(uint32_t os_thread, const char *name, size_t length)
{
    int saved = errno;

    if (length > NAME_BYTES)
        length = NAME_BYTES;
    struct mt_signals before = mt_lock(&names.lock);
    if (length && names.given_count < MAX_THREADS &&
        (names.given_count < names.given_capacity ||
         !mt_grow(&names.given, &names.given_capacity, names.given_count + 1,
                  sizeof *names.given))) {
        struct given *given = &names.given[names.given_count++];
        given->os_thread = os_thread;
        given->length = length;
        memcpy(given->name, name, length);
    }
    mt_unlock(&names.lock, before);
    errno = saved;
}

/* The list of names that were set since the last call, NULL if there are none. */
static struct given *take_given(size_t *count)
{
    struct mt_signals before = mt_lock(&names.lock);
    struct given *given = names.given;

    *count = names.given_count;
    names.given = NULL;
    names.given_count = names.given_capacity = 0;
    mt_unlock(&names.lock, before);
    return given;
}

static void tell_given(void)
{
    size_t count;
    struct given *given = take_given(&count);

    for (size_t i = 0; i < count; i++) {
        struct known *known = find(given[i].os_thread);
        if (known)
            known->given = true;
        define(MT_THREAD_GIVEN, given[i].os_thread, given[i].name, given[i].length);
    }
    free(given);
}

static size_t read_comm(const char *os_thread, char name[COMM_BYTES + 1])
{
    char path[64];
    size_t length;

    if (snprintf(path, sizeof path, "/proc/self/task/%s/comm", os_thread) >= (int)sizeof path)
        return 0;
    length = mt_io_read_text(path, name, COMM_BYTES + 1);
    return length && name[length - 1] == '\n' ? length - 1 : 0;
}

static void look_at(const char *os_thread, bool only_new)
{
    uint32_t number = (uint32_t)strtoul(os_thread, NULL, 10);
    size_t before = names.count;
    struct known *known = number ? find(number) : NULL;
    char name[COMM_BYTES + 1] = {0};

    if (!known || known->given || (only_new && names.count == before))
        return;
    size_t length = read_comm(os_thread, name);
    memset(name + length, 0, sizeof name - length);
    if (!length || !memcmp(known->name, name, COMM_BYTES))
        return;
    memcpy(known->name, name, COMM_BYTES);
    define(MT_THREAD_RENAMED, number, name, length);
}

static void look_at_all(bool only_new)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    struct stat facts;

    for (int i = 0; folder && i < MAX_THREADS && (entry = readdir(folder)); i++)
        look_at(entry->d_name, only_new);
    if (folder && !fstat(dirfd(folder), &facts) && facts.st_dev == names.proc)
        closedir(folder); /* otherwise the program closed the number, and has a file there */
}

/* Takes one system call: the folder has a link for each thread. */
static bool threads_changed(void)
{
    struct stat folder;
    const nlink_t before = names.links;

    if (stat("/proc/self/task", &folder))
        return false;
    names.links = folder.st_nlink;
    names.proc = folder.st_dev;
    return names.links != before;
}

static void pass(bool all)
{
    bool changed = threads_changed();

    if (!mt_collect_enter())
        return;
    tell_given();
    if (all || changed)
        look_at_all(!all);
    mt_collect_leave();
}

static void poll(void)
{
    bool all = mt_now_ns() >= names.next_pass_ns;

    pass(all);
    if (all)
        names.next_pass_ns = mt_now_ns() + PASS_NS;
}

static void stop(void)
{
    pass(true);
}

/* The parent's threads do not exist here. Their memory is leaked. */
static void forked(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    memset(&names, 0, sizeof names);
    names.lock = unlocked;
}

const struct mt_inject_source mt_thread_names_source = {
    .name = "threads", .poll = poll, .stop = stop, .forked = forked};
