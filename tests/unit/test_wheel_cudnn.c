/* Finds the real cuDNN of a PyTorch installation. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wheel.h"

static char root[] = "/tmp/memtrace-wheel-cudnn-XXXXXX";

/* "other/nvidia/cudnn/lib": folders below the root, one after the other, with the library. */
static void put(const char *folders)
{
    char path[PATH_MAX];

    for (const char *at = folders; at; at = strchr(at + 1, '/')) {
        size_t length = strcspn(at + (*at == '/'), "/") + (size_t)(at - folders) + (*at == '/');
        snprintf(path, sizeof path, "%s/%.*s", root, (int)length, folders);
        (void)mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s/%s/libcudnn_graph.so.9", root, folders);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void check(const char *packages, const char *wanted)
{
    struct mt_wheel *wheel = calloc(1, sizeof *wheel);
    char found[PATH_MAX], path[PATH_MAX + 64] = "";

    snprintf(wheel->folder, sizeof wheel->folder, "%s/torch", root);
    snprintf(wheel->packages, sizeof wheel->packages, packages, root, root);
    if (*wanted)
        snprintf(path, sizeof path, "%s/%s/libcudnn_graph.so.9", root, wanted);
    mt_wheel_cudnn(wheel, found);
    assert_string_equal(found, path);
    free(wheel);
}

TEST(the_first_of_the_packages_is_taken)
{
    assert_non_null(mkdtemp(root));
    check("%s/site:%s/other", "");
    check("", "");
    put("torch/lib");
    check("%s/site:%s/other", "torch/lib");
    put("other/nvidia/cudnn/lib");
    check("%s/site:%s/other", "other/nvidia/cudnn/lib");
    put("site/nvidia/cudnn/lib");
    check("%s/site:%s/other", "site/nvidia/cudnn/lib");
}

static int tidy(void **state)
{
    char command[sizeof root + 16];

    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

int main(void)
{
    return run_tests_of_file(NULL, tidy);
}
