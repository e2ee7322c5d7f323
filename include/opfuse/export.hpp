// Symbol visibility of the public API.
#pragma once

#if defined(__GNUC__)
#define OPFUSE_API __attribute__((visibility("default")))
#else
#define OPFUSE_API
#endif
