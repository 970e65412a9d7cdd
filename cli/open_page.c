#include "open_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "outputs.h"
#include "site_cache.h"
#include "util.h"

int mt_add_page_folder(struct mt_buf *folder, const char *trace)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    const char *slash = strrchr(trace, '/'), *name = slash ? slash + 1 : trace;
    char cache[PATH_MAX];

    if (mt_cache_folder(NULL, cache, &error) != MT_OK) {
        mt_say("--open needs a folder for the page: use -o DIR");
        return MT_EXIT_OUTPUT;
    }
    mt_buf_printf(folder, "%s/report-%s", cache, strcmp(name, "-") == 0 ? "stdin" : name);
    return folder->failed ? MT_EXIT_INPUT : -1;
}

/* Sets `path` to the path of a program in $PATH. Returns false if there is none. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH"), *end;

    for (; at && *at; at = *end ? end + 1 : end) {
        int length = (int)(strcspn(at, ":"));

        end = at + length;
        if (length && snprintf(path, PATH_MAX, "%.*s/%s", length, at, name) < PATH_MAX &&
            access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Finds the program that shows the page: $BROWSER, which is a name or a path, otherwise the program
 * that opens files on this desktop. */
static bool find_browser(char path[PATH_MAX])
{
    static const char *const openers[] = {"xdg-open", "open", "wslview"};
    const char *told = getenv("BROWSER");

    if (told && *told) {
        if (strchr(told, '/'))
            return snprintf(path, PATH_MAX, "%s", told) < PATH_MAX && access(path, X_OK) == 0;
        return find_program(told, path);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(openers); i++)
        if (find_program(openers[i], path))
            return true;
    return false;
}

/* Returns true if there is a display, or if $BROWSER is set. Without both, xdg-open starts a text
 * browser or hangs. */
static bool has_display(void)
{
    const char *told = getenv("BROWSER"), *x11 = getenv("DISPLAY"),
               *wayland = getenv("WAYLAND_DISPLAY"), *wsl = getenv("WSL_DISTRO_NAME");

    return (told && *told) || (x11 && *x11) || (wayland && *wayland) || (wsl && *wsl);
}

/* Runs in the child process. Starts a new session, so that Ctrl-C in the terminal does not close
 * the browser. */
static void become_browser(char *browser, char *page)
{
    char *words[] = {browser, page, NULL};
    int nothing = open("/dev/null", O_RDWR);

    setsid();
    for (int fd = 0; fd < 3 && nothing >= 0; fd++)
        dup2(nothing, fd);
    execv(browser, words);
    _exit(127);
}

/* Starts the browser from a child process that ends at once, so that no zombie is left. */
static bool start(char *browser, char *page)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        pid_t grandchild = fork();

        if (grandchild == 0)
            become_browser(browser, page);
        _exit(grandchild < 0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

void mt_open_page(const char *folder)
{
    char browser[PATH_MAX];
    struct mt_buf page = {0};

    mt_add_path_in(&page, folder, "report.html");
    if (page.failed)
        mt_say("memory ran out, so no browser was started");
    else if (!has_display())
        mt_say("no display, so no browser was started; the page is '%s'", page.data);
    else if (!find_browser(browser))
        mt_say("no browser was found; set BROWSER. The page is '%s'", page.data);
    else if (start(browser, page.data))
        mt_say("opened '%s'", page.data);
    else
        mt_say("cannot start '%s': %s; the page is '%s'", browser, strerror(errno), page.data);
    mt_buf_release(&page);
}
