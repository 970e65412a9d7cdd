#include "wheel_cudnn.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GRAPHS "libcudnn_graph.so.9"

static bool is_there(char path[PATH_MAX], const char *folder, int length, const char *below)
{
    int written = snprintf(path, PATH_MAX, "%.*s/%s/" GRAPHS, length, folder, below);

    return written > 0 && written < PATH_MAX && !strpbrk(path, ":;") && access(path, R_OK) == 0;
}

void mt_wheel_cudnn(const struct mt_wheel *wheel, char path[PATH_MAX])
{
    for (const char *at = wheel->packages; *at; at += *at == ':') {
        int length = (int)strcspn(at, ":");
        if (is_there(path, at, length, "nvidia/cudnn/lib"))
            return;
        at += length;
    }
    if (!is_there(path, wheel->folder, (int)strlen(wheel->folder), "lib"))
        path[0] = '\0';
}
