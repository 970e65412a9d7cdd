/* The versions that the libraries of the program's PyTorch were built for. A library that
 * simulate/site makes for the wheel returns them. Without it, the versions are those of CUDA
 * 13.0. */
#ifndef MT_WHEEL_VERSIONS_H
#define MT_WHEEL_VERSIONS_H

/* The functions that the library of the site exports. Each returns a version. */
#define SIM_WHEEL_CUDA  "memtrace_wheel_cuda"
#define SIM_WHEEL_CUDNN "memtrace_wheel_cudnn"
#define SIM_WHEEL_NCCL  "memtrace_wheel_nccl"

enum { CUDA_13 = 13000 };

int sim_cuda_version(void);  /* 1000 * major + 10 * minor */
int sim_cudnn_version(void); /* 10000 * major + 100 * minor + patch */
int sim_nccl_version(void);  /* 10000 * major + 100 * minor + patch */

#endif
