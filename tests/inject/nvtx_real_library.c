/* A second copy of NVTX, for nvtx_real_program. */
#include <nvtx3/nvToolsExt.h>

int nvtx_real_library(void);

int nvtx_real_library(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("shared");
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .payloadType = NVTX_PAYLOAD_TYPE_DOUBLE,
                                   .payload.dValue = 2.5,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED};

    event.message.registered = nvtxDomainRegisterStringA(domain, "inside");
    int level = nvtxDomainRangePushEx(domain, &event);
    nvtxMarkA("library");
    nvtxDomainRangePop(domain);
    return level;
}
