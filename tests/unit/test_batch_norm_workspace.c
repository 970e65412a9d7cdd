/* Workspaces of batch norms in channels-last layout equal those measured on an H200. */
#include <stdio.h>

#include "cmocka_all.h"

#include "../../simulate/driver/cudnn/batch_norm_workspace.c"

enum { NORMS = 212 };

TEST(every_measured_norm_is_right_to_the_byte)
{
    FILE *file = fopen(MEMTRACE_FIXTURES "/batch_norm_workspaces/h200.txt", "r");
    char line[256];
    int norms = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        size_t element_bytes, batch, channels, size, forward, backward;
        if (sscanf(line, "%zu %zu %zu %zu %zu %zu", &element_bytes, &batch, &channels, &size,
                   &forward, &backward) != 6)
            continue;
        struct batch_norm norm = {batch * size * size, channels, element_bytes == sizeof(float)};
        assert_int_equal(sim_batch_norm_forward_bytes(&norm), forward);
        assert_int_equal(sim_batch_norm_backward_bytes(&norm), backward);
        norms++;
    }
    fclose(file);
    assert_int_equal(norms, NORMS);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
