/* opfuse plug-ins: a shared library that runs pieces of a program on a device of its own. Plain C; a plug-in links
   nothing of opfuse. docs/plugins.md explains the calls and the text of pieces, examples/npu is a whole plug-in.

   The convention of every C ABI of opfuse (opfuse.h): a struct begins with its size, as its maker knows it, and a
   reader never looks behind the smaller of both; a status is returned, 0 is well; what was made is given back by a call
   of its own; texts are UTF-8 and end with 0; a call never throws. One thread at a time calls the functions of one
   device. */
#ifndef OPFUSE_PLUGIN_H
#define OPFUSE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a call or a field changes its meaning. A host refuses a plug-in of another version. */
#define OPFUSE_PLUGIN_ABI 1u
#define OPFUSE_PLUGIN_EXPORT __attribute__((visibility("default")))

typedef int32_t opfuse_plugin_status;
enum {
  OPFUSE_PLUGIN_OK = 0,
  OPFUSE_PLUGIN_UNSUPPORTED = 1, /* the piece is none of the device's: it runs elsewhere */
  OPFUSE_PLUGIN_INVALID = 2,     /* an argument that the host should not have given */
  OPFUSE_PLUGIN_NO_MEMORY = 3,
  OPFUSE_PLUGIN_FAILED = 4
};

typedef struct opfuse_device opfuse_device; /* a device that was opened */
typedef struct opfuse_kernel opfuse_kernel; /* a piece, compiled */
typedef uint64_t opfuse_memory;             /* of the device; 0 is none */

/* What the host offers. */
typedef struct opfuse_host {
  size_t size;
  uint32_t abi;            /* OPFUSE_PLUGIN_ABI of the host */
  const char* target_file; /* the target's file; of one that is compiled in its name alone */
} opfuse_host;

/* What a device says of itself; texts live as long as it is open. */
typedef struct opfuse_description {
  size_t size;
  const char* target; /* name of the target whose pieces it runs: "example-npu" */
  const char* version;
  uint64_t memory_bytes; /* 0: as much as the host has */
} opfuse_description;

/* One move of bytes between the host's memory and the device's. */
typedef struct opfuse_copy {
  size_t size;
  uint32_t to_device; /* 1: from `host` to `memory`; 0: back */
  void* host;
  opfuse_memory memory;
  uint64_t offset, bytes; /* within `memory` */
} opfuse_copy;

/* One run of a kernel: memories in the order in which the piece states its operands and results. */
typedef struct opfuse_launch {
  size_t size;
  opfuse_kernel* kernel;
  const opfuse_memory* memories;
  size_t count;
} opfuse_launch;

/* What a plug-in exports. */
OPFUSE_PLUGIN_EXPORT uint32_t opfuse_plugin_abi(void);
OPFUSE_PLUGIN_EXPORT opfuse_plugin_status opfuse_plugin_open(const opfuse_host* host, opfuse_device** device);
OPFUSE_PLUGIN_EXPORT opfuse_plugin_status opfuse_plugin_describe(opfuse_device* device,
                                                                 opfuse_description* description);
/* Whether the device runs the piece; where it does not, `reason` gets why, cut to `reason_size` bytes. */
OPFUSE_PLUGIN_EXPORT opfuse_plugin_status opfuse_plugin_accept(opfuse_device* device, const char* piece, char* reason,
                                                               size_t reason_size);
OPFUSE_PLUGIN_EXPORT opfuse_plugin_status opfuse_plugin_compile(opfuse_device* device, const char* piece,
                                                                opfuse_kernel** kernel);
OPFUSE_PLUGIN_EXPORT opfuse_plugin_status opfuse_plugin_allocate(opfuse_device* device, uint64_t bytes,
                                                                 opfuse_memory* memory);
OPFUSE_PLUGIN_EXPORT opfuse_plugin_status opfuse_plugin_copy(opfuse_device* device, const opfuse_copy* copy);
OPFUSE_PLUGIN_EXPORT opfuse_plugin_status opfuse_plugin_run(opfuse_device* device, const opfuse_launch* run);
OPFUSE_PLUGIN_EXPORT void opfuse_plugin_free(opfuse_device* device, opfuse_memory memory);
OPFUSE_PLUGIN_EXPORT void opfuse_plugin_destroy(opfuse_device* device, opfuse_kernel* kernel);
OPFUSE_PLUGIN_EXPORT void opfuse_plugin_close(opfuse_device* device);
/* Words on the last call that failed; "" where there are none. `device` is null for a failed open. */
OPFUSE_PLUGIN_EXPORT const char* opfuse_plugin_error(opfuse_device* device);

#ifdef __cplusplus
}
#endif

#endif
