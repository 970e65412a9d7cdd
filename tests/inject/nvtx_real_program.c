/* What check_nvtx.py runs if NVIDIA's own headers are there: the same calls that
 * nvtx_program makes, except for the thread, through NVTX itself; and a pool that
 * reports its blocks. */
#include <stdio.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>
#ifdef HAVE_MEMORY
#include <nvtx3/nvToolsExtMem.h>
#endif

int nvtx_real_library(void);

#ifdef HAVE_MEMORY
static char memory[1 << 16];

static void use_pool(void)
{
    const nvtxMemVirtualRangeDesc_t all = {sizeof memory, memory};
    const nvtxMemVirtualRangeDesc_t blocks[] = {{100, memory}, {200, memory + 256}};
    const nvtxMemHeapDesc_t heap = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                    .structSize = sizeof heap,
                                    .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
                                    .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                    .typeSpecificDescSize = sizeof all,
                                    .typeSpecificDesc = &all};
    nvtxMemHeapHandle_t handle = nvtxMemHeapRegister(NULL, &heap);
    const nvtxMemRegionsRegisterBatch_t both = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                                .structSize = sizeof both,
                                                .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                                .heap = handle,
                                                .regionCount = 2,
                                                .regionDescElementSize = sizeof blocks[0],
                                                .regionDescElements = blocks};
    const nvtxMemRegionRef_t first = {.pointer = memory};
    const nvtxMemRegionsUnregisterBatch_t one = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                                 .structSize = sizeof one,
                                                 .refType = NVTX_MEM_REGION_REF_TYPE_POINTER,
                                                 .refCount = 1,
                                                 .refElementSize = sizeof first,
                                                 .refElements = &first};

    nvtxMemRegionsRegister(NULL, &both);
    nvtxMemRegionsUnregister(NULL, &one);
    nvtxMemHeapUnregister(NULL, handle);
}
#endif

int main(void)
{
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = "message"};
    nvtxDomainHandle_t domain;
    nvtxRangeId_t id;

    nvtxNameOsThreadA((uint32_t)getpid(), "the main one");
    printf("push %d\n", nvtxRangePushA("outer"));
    printf("push %d\n", nvtxRangePushW(L"wide \x20ac"));
    domain = nvtxDomainCreateA("shared");
    printf("domain push %d\n", nvtxDomainRangePushEx(domain, &event));
    printf("library push %d\n", nvtx_real_library());
    printf("pop %d\n", nvtxRangePop());
    printf("domain pop %d\n", nvtxDomainRangePop(domain));
    id = nvtxRangeStartA("across threads");
    printf("id %s\n", id ? "yes" : "no");
    nvtxRangeEnd(id);
    printf("pop %d\n", nvtxRangePop());
    printf("pop %d\n", nvtxRangePop());
    nvtxDomainDestroy(domain);
#ifdef HAVE_MEMORY
    use_pool();
#endif
    return 0;
}
