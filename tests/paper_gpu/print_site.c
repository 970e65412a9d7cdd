/* Prepares the site of a command (simulated_site.h) and prints what a program needs of it, a line
 * "NAME=VALUE" each. Exits with 1 and the reason if there can be none.
 *
 *     print_site SIMULATED_LIBRARY COMMAND... */
#include <stdio.h>

#include "simulated_site.h"

int main(int argc, char **argv)
{
    static struct mt_simulated_site site;
    struct mt_error error = {0};

    if (argc < 3)
        return 2;
    struct mt_simulated_site_request request = {.command = argv + 2, .simulated_library = argv[1]};
    if (mt_simulated_site_prepare(&request, &site, &error)) {
        fprintf(stderr, "print_site: %s\n", error.text);
        return 1;
    }
    printf("LD_PRELOAD=%s\nMEMTRACE_CUPTI=%s\n", site.preload, site.cupti);
    fprintf(stderr, "PyTorch %s of %s (%s): %u libraries, %u functions, %u simulated, %s\n",
            site.torch_version, site.python, site.python_from, site.library_count,
            site.function_count, site.simulated_count, site.was_made ? "made" : "cached");
    return 0;
}
