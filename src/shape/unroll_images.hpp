// Groups that run image by image (shape/loop_over_images.cpp) as a graph that an interpreter runs.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.hpp"

namespace opfuse {

/// Ends the names of values that stand for each image in turn.
inline constexpr std::string_view kOfImage = "[image]";
/// The name of that value for one image: "y[image]" -> "y[image 3]".
std::string name_for_image(std::string_view name, int64_t image);

/// The same graph with a copy of those groups for each image: what a program's loop is compared with. Values of a copy
/// are named by name_for_image, also inside bodies.
Graph unroll_images(const Graph& fused);

}  // namespace opfuse
