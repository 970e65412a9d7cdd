/* Where the driver puts memory: serves a list of requests and prints the list with addresses.
 *
 *   nvcc -O1 -o driver_addresses driver_addresses.cu
 *   ./driver_addresses < requests > answers
 *
 * A request is "a ID BYTES" or "f ID"; an answer is "a MIB MIB" (size, address) or "f MIB", as in
 * fixtures/driver_addresses, where addresses count from that of the first request. */
#include <cuda_runtime.h>
#include <stdio.h>

#include <map>

static const double mib = 1 << 20;

int main(void)
{
    std::map<long, char *> live;
    char kind, *first = NULL;
    long id;

    cudaFree(0);
    while (scanf(" %c %ld", &kind, &id) == 2) {
        size_t bytes = 0;
        void *address = NULL;

        if (kind == 'f') {
            printf("f %g\n", (live[id] - first) / mib);
            cudaFree(live[id]);
            live.erase(id);
            continue;
        }
        if (scanf("%zu", &bytes) != 1 || cudaMalloc(&address, bytes) != cudaSuccess) {
            fprintf(stderr, "request %ld of %zu bytes was not served\n", id, bytes);
            return 1;
        }
        live[id] = (char *)address;
        first = first ? first : live[id];
        printf("a %g %g\n", bytes / mib, (live[id] - first) / mib);
    }
    return 0;
}
