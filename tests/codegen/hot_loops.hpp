// What the innermost loops with products in a kernel's assembly do besides: nothing that takes an element at a time, no
// division, nothing that registers had no room for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "cpu/generator.hpp"

namespace opfuse::test {

/// Lines of assembly of each innermost loop: from a label to the jump back to it, without such a pair inside.
inline std::vector<std::vector<std::string>> innermost_loops(const std::string& assembly) {
  static const std::regex label("^(\\.LBB[0-9_]+):"), jump("^\\s+j[a-z]+\\s+(\\.LBB[0-9_]+)");
  std::vector<std::string> lines;
  for (size_t at = 0; at < assembly.size();) {
    const size_t end = std::min(assembly.find('\n', at), assembly.size());
    lines.push_back(assembly.substr(at, end - at));
    at = end + 1;
  }
  std::map<std::string, size_t> labels;
  std::vector<std::vector<std::string>> loops;
  size_t outer = 0;  // loops that begin before this line have another one inside
  std::smatch found;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(lines[i], found, label)) labels[found[1]] = i;
    if (!std::regex_search(lines[i], found, jump) || !labels.contains(found[1])) continue;
    const size_t begin = labels[found[1]];
    if (begin < outer) continue;
    loops.emplace_back(lines.begin() + static_cast<std::ptrdiff_t>(begin),
                       lines.begin() + static_cast<std::ptrdiff_t>(i));
    outer = begin + 1;
  }
  return loops;
}

/// Fails where a loop with `products` (a pattern of instructions) divides, converts or inserts single elements, or
/// keeps vectors on the stack (unless it `spills`, which is known); where no loop multiplies; and where the kernel
/// divides vectors or converts scalars anywhere.
inline void expect_clean_products(const KernelSpec& spec, const TargetInfo& target, const std::string& products,
                                  bool spills = false) {
  static const std::regex anywhere("\\bv?(div[ps]s|sqrt[ps]s|cvtt?s[sd]2u?si|cvtu?si2s[sd])\\b"),
      element("\\bv?(pinsr[bwdq]|pextr[bwdq]|insertps)\\b"),
      stack("\\bvmov[a-z0-9]+\\s+%[xyz]mm[0-9]+, -?[0-9]*\\(%r[sb]p\\)");
  CodegenOptions options;
  options.emit_assembly = true;
  const std::string text = generate({spec}, target, options).kernels[0].assembly;
  std::smatch found;
  EXPECT_FALSE(std::regex_search(text, found, anywhere)) << found.str();
  int multiplying = 0;
  for (const std::vector<std::string>& loop : innermost_loops(text)) {
    const std::regex of_products(products);
    const auto has = [&](const std::regex& pattern) {
      return std::any_of(loop.begin(), loop.end(),
                         [&](const std::string& line) { return std::regex_search(line, pattern); });
    };
    if (!has(of_products)) continue;
    ++multiplying;
    std::string body;
    for (const std::string& line : loop) body += line + "\n";
    EXPECT_FALSE(has(element) || (has(stack) && !spills)) << body;
  }
  EXPECT_GT(multiplying, 0) << text;
}

}  // namespace opfuse::test
