/* opfuse in C: loads and runs compiled models (.opf). libopfuse_runtime.so, no compiler, no C++ in the interface.
 *
 *   opfuse_executable* exe;
 *   if (opfuse_check_abi(OPFUSE_ABI) || opfuse_load("resnet.opf", &exe)) { puts(opfuse_last_error()); return 1; }
 *
 * Conventions: every function that can fail returns an opfuse_status, 0 for success, and writes its result through its
 * last parameter. Every struct begins with `size`, the bytes of the struct that the caller was compiled with: later
 * releases append fields and read no more than that. Handles belong to who got them, until the function that frees
 * them; freeing NULL does nothing. Executables may be used by any number of threads, a context by one at a time.
 */
#ifndef OPFUSE_OPFUSE_H
#define OPFUSE_OPFUSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OPFUSE_C_API __attribute__((visibility("default")))
#else
#define OPFUSE_C_API
#endif

/* Of this header. A library knows its own and all older ones. */
#define OPFUSE_ABI 2 /* 2: GPUs */

typedef int32_t opfuse_status;
enum {
  OPFUSE_OK = 0,
  OPFUSE_BAD_ARGUMENT = 1, /* a null pointer, a wrong `size`, an index out of range */
  OPFUSE_BAD_FILE = 2,     /* the .opf cannot be read, is damaged or of another version */
  OPFUSE_UNSUPPORTED = 3,  /* this machine lacks what the program needs */
  OPFUSE_BAD_BINDING = 4,  /* an array is missing, or has the wrong name, type or shape */
  OPFUSE_OUT_OF_MEMORY = 5,
  OPFUSE_DEVICE_FAILED = 6, /* a GPU's driver reported an error */
  OPFUSE_INTERNAL = 7,      /* a bug in opfuse */
  OPFUSE_OTHER_ABI = 8      /* the library is older than the header */
};

typedef int32_t opfuse_type;
enum {
  OPFUSE_F32 = 0,
  OPFUSE_F64 = 1,
  OPFUSE_F16 = 2,
  OPFUSE_BF16 = 3,
  OPFUSE_I8 = 4,
  OPFUSE_U8 = 5,
  OPFUSE_I16 = 6,
  OPFUSE_U16 = 7,
  OPFUSE_I32 = 8,
  OPFUSE_U32 = 9,
  OPFUSE_I64 = 10,
  OPFUSE_U64 = 11,
  OPFUSE_BOOL = 12,
  OPFUSE_OTHER_TYPE = 255 /* types that C has no arrays of */
};

typedef struct opfuse_executable opfuse_executable; /* a compiled model; shared, immutable */
typedef struct opfuse_context opfuse_context;       /* one caller's arrays, memory, threads */

/* A caller's dense row-major array. It is read and written in place, and never freed. */
typedef struct opfuse_array {
  size_t size; /* sizeof(opfuse_array) */
  opfuse_type type;
  int32_t rank;
  const int64_t* shape;
  void* data;
} opfuse_array;

/* An input or output of a model. The pointers live as long as the executable. */
typedef struct opfuse_tensor_info {
  size_t size; /* sizeof(opfuse_tensor_info) */
  const char* name;
  opfuse_type type;
  int32_t rank;
  const int64_t* shape; /* -1: open, given by the array that is bound */
} opfuse_tensor_info;

typedef struct opfuse_context_options {
  size_t size;     /* sizeof(opfuse_context_options) */
  int32_t threads; /* 0: those that this process may use */
  int32_t reserved;
  int32_t device;         /* ABI 2, executables of a GPU: which one, as CUDA counts them */
  int32_t device_results; /* ABI 2, 1: outputs that nobody binds stay in its memory */
} opfuse_context_options;

/* OPFUSE_OK if the library knows this ABI. Call it first, with OPFUSE_ABI. */
OPFUSE_C_API opfuse_status opfuse_check_abi(uint32_t abi);
OPFUSE_C_API const char* opfuse_version_text(void); /* "0.2.0" */
/* What the last call of this thread that failed has to say: code, message, hint. "" when none failed. */
OPFUSE_C_API const char* opfuse_last_error(void);

/* Maps an .opf. It contains machine code: load only what you would run. */
OPFUSE_C_API opfuse_status opfuse_load(const char* path, opfuse_executable** executable);
OPFUSE_C_API void opfuse_free(opfuse_executable* executable); /* contexts may outlive it */
OPFUSE_C_API size_t opfuse_input_count(const opfuse_executable* executable);
OPFUSE_C_API size_t opfuse_output_count(const opfuse_executable* executable);
OPFUSE_C_API opfuse_status opfuse_input_info(const opfuse_executable* executable, size_t index,
                                             opfuse_tensor_info* info);
OPFUSE_C_API opfuse_status opfuse_output_info(const opfuse_executable* executable, size_t index,
                                              opfuse_tensor_info* info);

/* `options` may be NULL. */
OPFUSE_C_API opfuse_status opfuse_context_create(const opfuse_executable* executable,
                                                 const opfuse_context_options* options, opfuse_context** context);
OPFUSE_C_API void opfuse_context_free(opfuse_context* context);
/* Binds an input or output by name, without a copy: the data must stay while opfuse_run uses it. The struct and its
 * shape are read now. */
OPFUSE_C_API opfuse_status opfuse_bind(opfuse_context* context, const char* name, const opfuse_array* array);
OPFUSE_C_API opfuse_status opfuse_run(opfuse_context* context);
/* The array of an output after opfuse_run: the bound one, or the context's own. `shape` and the context's own data live
 * until the next call for this context. */
OPFUSE_C_API opfuse_status opfuse_output(opfuse_context* context, const char* name, opfuse_array* array);

/* ABI 2, executables of a GPU. opfuse_bind for memory of the GPU `device`: data is a CUdeviceptr, a multiple of 16. */
OPFUSE_C_API opfuse_status opfuse_bind_on_device(opfuse_context* context, const char* name, const opfuse_array* array,
                                                 int32_t device);
/* Gives the run to a CUstream or cudaStream_t of the caller's (NULL: the default stream) and does not wait for it.
 * Bound arrays of the host stay untouched until the stream, or opfuse_wait, was waited for. */
OPFUSE_C_API opfuse_status opfuse_run_on(opfuse_context* context, void* stream);
OPFUSE_C_API opfuse_status opfuse_wait(opfuse_context* context);

#ifdef __cplusplus
}
#endif
#endif
