// The first groups of a batch image by image, while the maps of all images together are larger than caches:
//
//     x[B] -- A -- s[B] -- C -- t[B] -- rest                     s holds B maps
//
//     x[B] --+-- A -- s[1] -- C --+-- concat t[B] -- rest        s holds one, which C reads while it is in a cache
//            +-- A -- s[1] -- C --+
//
// The groups of an image are those of a batch of one, and all images share their kernels and weights; results are
// parts of one buffer.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "program/image_loop.hpp"

namespace opfuse {

/// Rewrites a fused graph whose leading groups take maps of one constant batch. Leaves graphs alone where no map
/// exceeds the room or fewer than two groups would run by images. Returns one line where it did.
std::vector<std::string> run_by_images(Graph& fused, const ImageCaches& caches);

}  // namespace opfuse
