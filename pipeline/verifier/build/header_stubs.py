"""Stand-ins for headers of CUDA's mathematical libraries, for toolkits that hold compiler and runtime only.

torch's CUDA headers include them for a few type names. A candidate that only needs a stream or a guard can
so be compiled where the libraries are missing; one that calls the libraries cannot, and its build says so.
Used only with a CPU build of torch, where nothing that is compiled is ever loaded.
"""

from __future__ import annotations

HEADER_STUBS = {
    "cublas_v2.h": "typedef struct cublasContext* cublasHandle_t;\ntypedef int cublasStatus_t;\n",
    "cublasLt.h": "typedef struct cublasLtContext* cublasLtHandle_t;\n",
    "cusparse.h": "typedef struct cusparseContext* cusparseHandle_t;\ntypedef int cusparseStatus_t;\n",
    "cusolver_common.h": "typedef int cusolverStatus_t;\n",
    "cusolverDn.h": "typedef struct cusolverDnContext* cusolverDnHandle_t;\n",
}
"""Header name to the declarations that torch's own headers need of it."""
