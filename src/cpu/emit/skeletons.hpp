// The loop-nest shapes. Each emits the whole body of a kernel for its kind of region and sets
// Kernel::parts; emit_kernel chooses by the schedule.
#pragma once

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

/// Any single stage: maps, rows, and contractions and windows outside their fast forms.
void emit_generic(Kernel& k);
/// Updates stored at computed indices.
void emit_scatter(Kernel& k);
/// Register-tiled direct convolution and GEMM (schedule knob "nv").
void emit_contraction(Kernel& k);
/// Winograd F(h x w, 3x3) (schedule knob "winograd_h").
void emit_winograd(Kernel& k);
/// Register-tiled pooling and depthwise convolution (schedule knob "tile_w" without "nv").
void emit_window(Kernel& k);
/// Convolution with pixels in the lanes (schedule knob "pixels").
void emit_pixels(Kernel& k);
/// A convolution and a window behind it, the rows between them in scratch.
void emit_chain(Kernel& k);
/// Scores, softmax, product with the values; the scores of a few rows in scratch.
void emit_attention(Kernel& k);

void emit_kernel(Kernel& k);

}  // namespace opfuse::cpu
