// `--emit llvm,asm DIR`, `--emit cuda DIR`: one readable file per kernel, named after its group and source nodes.
#pragma once

#include <string>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse {

/// Writes DIR/NAME.ll, DIR/NAME.s and DIR/NAME.cu for every kernel that has text; NAME is the first launch that uses
/// it. A header comment lists the region, schedule, shapes and every launch. E::file_write_failed.
void emit_kernel_files(const Program& program, const std::vector<size_t>& kernel_of_launch,
                       const std::vector<KernelCode>& kernels, const std::string& folder);

}  // namespace opfuse
