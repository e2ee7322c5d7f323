// What shaping did and left, for people: the one place where its records become sentences.
#pragma once

#include <string>
#include <vector>

#include "shape/verdict.hpp"

namespace opfuse {

/// Pairs of groups that were looked at for one launch: those that `explain` has a line for.
std::vector<ShapeVerdict> pairs_of(const std::vector<ShapeVerdict>& verdicts);

/// What a pair is called in reports: "chain", "gate", "means", "norm", "factor".
std::string kind_of(const ShapeVerdict& pair);
/// Of a pair: "one launch, 1.61 MB between them stay in caches", or why there are two.
std::string sentence_of(const ShapeVerdict& pair);

/// Lines of a report: what each pass did, how many of how many, what that saves; Linears that stay apart with the
/// reason.
std::vector<std::string> shaping_lines(const std::vector<ShapeVerdict>& verdicts);

}  // namespace opfuse
