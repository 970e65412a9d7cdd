/* What PyTorch asks NVML before it says that memory is short, beside the stand-in
 * of fixtures/standin: the device of a PCI address, and who runs there: nobody. */
#include <stdio.h>

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *processes);

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
{
    unsigned domain, bus; /* the bus is 1 + the device's number (paper_device.c) */
    if (sscanf(address, "%x:%x:", &domain, &bus) != 2 || bus == 0) {
        return 2; /* invalid argument */
    }
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *processes)
{
    (void)device, (void)processes;
    *count = 0;
    return 0;
}
