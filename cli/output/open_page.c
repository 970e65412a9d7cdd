#include "open_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "outputs.h"
#include "safe_path.h"
#include "util.h"

#define FOLDER_PREFIX "report-"

int mt_open_page_add_folder(struct mt_buf *folder, const char *trace)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    const char *slash = strrchr(trace, '/'), *name = slash ? slash + 1 : trace;
    struct mt_cache cache;

    if (mt_cache_open(NULL, &cache, &error) != MT_OK) {
        mt_message("--open needs a folder for the page: use -o DIR");
        return MT_EXIT_OUTPUT;
    }
    mt_cache_close(&cache);
    mt_buf_printf(folder, "%s/" FOLDER_PREFIX "%.*s", cache.path,
                  NAME_MAX - (int)(sizeof FOLDER_PREFIX - 1),
                  strcmp(name, "-") == 0 ? "stdin" : name);
    return -1;
}

static bool is_program(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

/* Sets `path` to the path of a program in $PATH. Returns false if there is none. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH"), *end;

    for (; at && *at; at = *end ? end + 1 : end) {
        int length = (int)(strcspn(at, ":"));

        end = at + length;
        if (length && snprintf(path, PATH_MAX, "%.*s/%s", length, at, name) < PATH_MAX &&
            is_program(path))
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
            return snprintf(path, PATH_MAX, "%s", told) < PATH_MAX && is_program(path);
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

/* Runs in the child process. Ignores and blocks no signal, and connects the standard streams to
 * /dev/null. Starts a new session, so that Ctrl-C in the terminal does not close the browser. */
static void set_state(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigaction(SIGPIPE, &usual, NULL);
    sigaction(SIGXFSZ, &usual, NULL);
    setsid();
    for (int fd = 0; fd < 3 && nothing >= 0; fd++)
        dup2(nothing, fd);
}

/* The child that starts the browser ends at once, so that no zombie is left. The pipe closes when
 * the browser runs; before that, the reason why it does not run is written to it. */
static void start_in_child(const char *browser, const char *page, int report)
{
    char *words[] = {(char *)browser, (char *)page, NULL};
    pid_t grandchild = fork();
    int why;

    if (grandchild > 0)
        _exit(0);
    if (grandchild == 0) {
        set_state();
        execv(browser, words);
    }
    why = errno;
    (void)!write(report, &why, sizeof why);
    _exit(127);
}

/* Returns 0, or the errno of why the browser does not run. */
static int start(const char *browser, const char *page)
{
    int report[2], why = 0;
    ssize_t length;
    pid_t child;

    if (pipe(report) != 0)
        return errno;
    (void)fcntl(report[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(report[1], F_SETFD, FD_CLOEXEC);
    child = fork();
    if (child == 0)
        start_in_child(browser, page, report[1]);
    if (child < 0)
        why = errno;
    close(report[1]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    do
        length = child > 0 ? read(report[0], &why, sizeof why) : 0;
    while (length < 0 && errno == EINTR);
    close(report[0]);
    return why;
}

/* Appends the absolute path of the page: a browser would read "-x" as an option and "a:b" as a
 * URL. */
static void add_page(struct mt_buf *page, const char *folder)
{
    char here[PATH_MAX];

    if (*folder != '/' && getcwd(here, sizeof here)) {
        mt_buf_add_text(page, here);
        mt_buf_add_text(page, strcmp(here, "/") == 0 ? "" : "/");
    }
    mt_outputs_add_path(page, folder, "report.html");
}

void mt_open_page(const char *folder)
{
    char browser[PATH_MAX];
    struct mt_buf page = {0};
    int why;

    add_page(&page, folder);
    if (!has_display())
        mt_message("no display, so no browser was started; the page is '%s'", page.data);
    else if (!find_browser(browser))
        mt_message("no browser was found; set BROWSER to a program. The page is '%s'", page.data);
    else if ((why = start(browser, page.data)) != 0)
        mt_message("cannot start '%s': %s; the page is '%s'", browser, strerror(why), page.data);
    else
        mt_message("opened '%s'", page.data);
    mt_buf_release(&page);
}
