// An open batch image by image: what fusion/images.hpp does with a constant one, when the batch is known.
//
//     for image in batch:                 its kernels get 1 as the batch and pointers to that image
//       launch 0 .. launches - 1          maps that only they touch lie where those of the first image would
//     the other launches, for all images
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// What decides, here and in fusion/images.hpp: caches in bytes.
struct ImageCaches {
  int64_t weights = 0;  ///< room for the weights that every image reads again
  int64_t maps = 0;     ///< room for the maps between two groups or launches
};

/// The leading launches whose every result for an image follows from that image alone, up to the last one that touches
/// a map which exceeds the caches at a batch of 8. Sets program.image_loop where those are two or more, and plans
/// memory again; says so in a note.
void loop_over_images(Program& program, const ImageCaches& caches);

/// By buffer: bytes from one image to the next for launches of the loop; 0 for constants and for maps that only the
/// loop touches.
std::vector<int64_t> image_steps(const Program& program);

}  // namespace opfuse
