// Attention whose queries, keys and values are cut from one Linear.
#pragma once

#include <fmt/format.h>

#include <string>

namespace opfuse {

/// Of x: f32[1,8,32], heads of 8. `linear` makes %l: f32[1,8,96] of it.
inline std::string attention_of_one_projection(const std::string& linear) {
  std::string text = "graph (%x: f32[1,8,32]) { %h = const splat<0.35> : f32[]\n" + linear +
                     "\n%last = const splat<2> : i64[1] %by = const splat<1> : i64[1]\n";
  for (int i = 0; i < 3; ++i)
    text += fmt::format(
        "%f{0} = const splat<{1}> : i64[1] %e{0} = const splat<{2}> : i64[1]\n"
        "%p{0} = slice(%l, %f{0}, %e{0}, %last, %by) %g{0} = const dense<1,8,4,8> : i64[4]\n"
        "%r{0} = reshape(%p{0}, %g{0}) %t{0} = transpose(%r{0}) {{perm = [0,2,{3}]}}\n",
        i, 32 * i, 32 * i + 32, i == 1 ? "3,1" : "1,3");
  return text + "%o = matmul(%t0, %t1) %i = mul(%o, %h) %a = softmax(%i) {axis = -1} %y = matmul(%a, %t2) return %y }";
}

}  // namespace opfuse
