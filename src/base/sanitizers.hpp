// Whether this is a build of AddressSanitizer or ThreadSanitizer: GCC defines a macro, Clang has a feature.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OPFUSE_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define OPFUSE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define OPFUSE_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define OPFUSE_TSAN 1
#endif
