// The first groups of a batch image by image, where the maps of all images together are larger than caches:
//
//     x[B] -- A -- s[B] -- C -- t[B] -- rest                     s holds B maps
//
//     x[B] -- split -- x[1] -- A -- s[1] -- C -- t[1] -- all_images -- t[B] -- rest
//
// The groups of an image are those of a batch of one, so what follows chooses chains and kernels for that; s holds one
// map, which C reads while it is in a cache. A program runs them in a loop (program/image_loop.hpp); x[1] and t[1] are
// parts of the maps of all images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "program/image_traffic.hpp"

namespace opfuse {

/// Rewrites a fused graph whose leading groups take maps of one constant batch, as many groups as save most. Leaves
/// graphs alone where fewer than two do. Returns one line where it rewrote.
std::vector<std::string> run_by_images(Graph& fused, const ImageCaches& caches);

/// Ends the names of values that stand for each image in turn.
inline constexpr std::string_view kOfImage = "[image]";
/// The name of that value for one image: "y[image]" -> "y[image 3]".
std::string name_for_image(std::string_view name, int64_t image);

/// The same graph with a copy of those groups for each image, which a graph interpreter can run: what a program's loop
/// is compared with. Values of a copy are named by name_for_image, also inside bodies.
Graph unroll_images(const Graph& fused);

}  // namespace opfuse
