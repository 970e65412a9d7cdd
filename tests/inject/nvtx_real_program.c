/* What check_nvtx.py runs if NVIDIA's own headers are there: the same calls that
 * nvtx_program makes, except for the thread, through NVTX itself. */
#include <stdio.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

int nvtx_real_library(void);

int main(void)
{
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = "message"};

    nvtxNameOsThreadA((uint32_t)getpid(), "the main one");
    printf("push %d\n", nvtxRangePushA("outer"));
    printf("push %d\n", nvtxRangePushW(L"wide \x20ac"));
    nvtxDomainHandle_t domain = nvtxDomainCreateA("shared");
    printf("domain push %d\n", nvtxDomainRangePushEx(domain, &event));
    printf("library push %d\n", nvtx_real_library());
    printf("pop %d\n", nvtxRangePop());
    printf("domain pop %d\n", nvtxDomainRangePop(domain));
    nvtxRangeId_t id = nvtxRangeStartA("across threads");
    printf("id %s\n", id ? "yes" : "no");
    nvtxRangeEnd(id);
    printf("pop %d\n", nvtxRangePop());
    printf("pop %d\n", nvtxRangePop());
    nvtxDomainDestroy(domain);
    return 0;
}
