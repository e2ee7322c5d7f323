// An open batch image by image.
//
//     for image in batch:                 kernels of one image, with pointers to that image
//       the first launches                maps that only they touch lie where those of the first image would
//     the other launches, for all images
//
// A constant batch is cut in the fused graph (shape/loop_over_images.cpp), whose groups are then chosen for one image.
// The kernels of an open batch get 1 for it where that saves something, as a run decides.
#pragma once

#include "program/image_traffic.hpp"
#include "program/program.hpp"

namespace opfuse {

/// Of an open batch, the leading launches whose every result for an image follows from that image alone, as many as
/// save most at a batch of 8. Makes them a body of the program where those are two or more, and plans memory again;
/// says so in a note.
void loop_over_images(Program& program, const ImageCaches& caches,
                      int64_t arena_comparisons = Limits{}.arena_comparisons);

}  // namespace opfuse
