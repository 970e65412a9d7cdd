/* The exit status of a process that ends by exit or by returning from main. The handler is
 * registered after main has started: a handler from the library's constructor would run after the
 * library's own end (lifecycle.c). For other ends the parent process records the status:
 * collector/record. */
#include "exit_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "core.h"
#include "header.h"

static void note(int status, void *unused)
{
    char text[MT_ENDING_TEXT], time[32];
    struct timespec now;

    (void)unused;
    if (!mt_collect_is_running() || mt_core.process != getpid() || !mt_collect_enter())
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(time, sizeof time, "%llu",
                   (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
    mt_collect_fact("ended", mt_ending_text(MT_ENDED_EXIT, status & 0xFF, text));
    mt_collect_fact("ended_t_ns", time);
    mt_collect_leave();
}

/* A forked child inherits the parent's handlers. */
void mt_exit_note_begin(void)
{
    static bool registered;

    if (!registered)
        registered = on_exit(note, NULL) == 0;
}
