// The widest of a function's versions that this processor runs.
#pragma once

namespace opfuse::quantization {

#if defined(__x86_64__) && defined(__GNUC__)
template <class F>
F* by_vectors(F* base, F* avx2, F* avx512) {
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return wide ? avx512 : __builtin_cpu_supports("avx2") ? avx2 : base;
}
#endif

}  // namespace opfuse::quantization
