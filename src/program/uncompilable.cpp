// E0502 and what `opfuse check` lists. An operator that opfuse does not know leaves its results without a shape, and
// so is everything computed from them: those nodes are told apart from the ones that cause it. A remedy is a property
// of the ONNX operator; the interpreter helps only where the operator is known and memory can be planned around it.
#include "program/uncompilable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "ir/body.hpp"
#include "ir/defined_symbols.hpp"
#include "ir/dim_values.hpp"
#include "ir/flops.hpp"
#include "ir/located.hpp"
#include "ir/value_name.hpp"

namespace opfuse {
namespace {

constexpr const char* kAllowReference = "--allow-reference runs it in the interpreter, which is slow";
constexpr const char* kFound =
    "how many there are depends on the data, which runs on cpu targets: compile for one, or end the model before it";
constexpr const char* kOnHost = "end the model before it and do this step on the host";

struct Remedy {
  std::string_view op, text;
};

constexpr Remedy kRemedies[] = {
    {"If",
     "an If whose condition is a constant is read as its branch: export with fixed sizes, or only the branch taken"},
    {"Loop",
     "a Loop whose number of trips and condition fold is unrolled: fix sizes with --dim, or export it unrolled"},
    {"Scan", "a Scan over a fixed number of steps is unrolled: fix sizes with --dim, or export it unrolled"},
    {"NonMaxSuppression", kFound},
    {"NonZero", kFound},
    {"Unique", kFound},
    {"Compress", kFound},
    {"StringNormalizer", kOnHost},
    {"StringConcat", kOnHost},
    {"StringSplit", kOnHost},
    {"RegexFullMatch", kOnHost},
    {"TfIdfVectorizer", kOnHost},
    {"ImageDecoder", kOnHost},
    {"RandomNormal", "export the model for inference: random numbers are its input then"},
    {"RandomNormalLike", "export the model for inference: random numbers are its input then"},
    {"RandomUniform", "export the model for inference: random numbers are its input then"},
    {"RandomUniformLike", "export the model for inference: random numbers are its input then"},
    {"Multinomial", "export the model for inference: random numbers are its input then"},
    {"Bernoulli", "export the model for inference: random numbers are its input then"},
};

bool has_memory(const TensorType& type, const std::set<std::string>& symbols) {
  if (!type.shape.ranked || byte_size(type.dtype) == 0) return false;
  std::set<std::string> used;
  for (const Dim& dim : type.shape.dims) dim.collect_symbols(used);
  return std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

bool is_known(const Value* value) {
  return value == nullptr || (value->type.shape.ranked && value->type.dtype != DType::unknown);
}

bool only_follows(const Node& node) { return !std::all_of(node.inputs.begin(), node.inputs.end(), is_known); }

/// Of shape arithmetic that a node's shape comes from: more integers than are followed. Null when there are none.
const Value* too_wide(const Node& node) {
  std::vector<const Node*> open{&node};
  std::set<const Node*> seen;  // looked up only
  while (!open.empty()) {
    const Node* at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    for (const Value* v : at->inputs) {
      const bool arithmetic = v && is_integer(v->type.dtype) && v->producer && v->producer->op->dims;
      if (!arithmetic || !v->type.shape.ranked) continue;
      const auto count = v->type.shape.elements().constant();
      if (count && *count > most_dim_values()) return v;
      open.push_back(v->producer);
    }
  }
  return nullptr;
}

std::string remedy_of(const Node& node, bool interpreted) {
  if (!is_known(node.output()))
    if (const Value* wide = too_wide(node))
      return fmt::format("{} integers of shape arithmetic (\"{}\") are not followed, {} are; {}",
                         wide->type.shape.elements().value(), value_name(*wide), most_dim_values(),
                         how_to_raise("shape_values"));
  if (interpreted) return kAllowReference;
  if (!defined_symbols(node).empty()) return kFound;
  if (const std::string_view text = remedy_for(source_operator(node)); !text.empty()) return std::string(text);
  if (only_follows(node) && node.op != opaque_op()) return "it compiles once the nodes before it do";
  if (node.op != opaque_op()) return kGiveSizes;
  const OpaqueAttrs& kept = *static_cast<const OpaqueAttrs*>(node.attrs());
  if (kept.reason.find("--dim NAME=SIZE") != std::string::npos) return kGiveSizes;
  if (kept.domain.empty() && kept.reason.ends_with("is not known"))
    return "export with another opset, which may spell it in other operators; opfuse ops lists the known ones";
  if (kept.domain.empty()) return fmt::format("export without that, or {}", kOnHost);
  return "write it as an expression (--operator, `operators` of the APIs), give the model a function of that name "
         "(ONNX local functions are inlined), or end it before the operator";
}

/// "If", "If and Loop", "If, Loop and Scan"
std::string listed(const std::set<std::string>& names) {
  std::string text;
  size_t left = names.size();
  for (const std::string& name : names) text += name + (left > 2 ? ", " : left == 2 ? " and " : ""), --left;
  return text;
}

/// What helps where one remedy is that of all; empty: there are more.
std::string only_remedy(const std::vector<Obstacle>& obstacles) {
  std::string found;
  for (const Obstacle& o : obstacles) {
    if (o.follows) continue;
    if (!found.empty() && found != o.remedy) return {};
    found = o.remedy;
  }
  return found;
}

/// True whatever the model: what the interpreter runs is named, and so is what it does not.
std::string hint_of(const std::vector<Obstacle>& obstacles, bool allow_reference) {
  std::set<std::string> runs, stays;
  std::string raise;  ///< where a limit is what stands in the way
  bool known = true;
  for (const Obstacle& o : obstacles) {
    if (o.remedy.find("--limit ") != std::string::npos) raise = o.remedy;
    if (!o.follows) (o.interpreted && !allow_reference ? runs : stays).insert(o.op);
    known = known && o.known;
  }
  if (!raise.empty()) return raise;
  if (stays.empty()) return fmt::format("--allow-reference runs {} in the interpreter, which is slow", listed(runs));
  const std::string one = only_remedy(obstacles);
  const std::string check = one.empty() ? "opfuse check says for each what would help" : one;
  if (!runs.empty())
    return fmt::format("--allow-reference runs {} in the interpreter, but not {}; {}", listed(runs), listed(stays),
                       check);
  if (known)
    return fmt::format(
        "memory is planned before a run, sizes of {} follow from data; opfuse run --reference interprets "
        "the whole model; {}",
        listed(stays), check);
  return allow_reference ? fmt::format("the interpreter does not run {} either; {}", listed(stays), check) : check;
}

}  // namespace

std::string_view remedy_for(std::string_view onnx_op) {
  for (const Remedy& row : kRemedies)
    if (row.op == onnx_op) return row.text;
  return {};
}

bool runs_in_interpreter(const Node& node, const Graph& graph) {
  if (!node.op->reference || !defined_symbols(node).empty()) return false;
  const std::set<std::string> symbols = all_symbols(graph);
  const auto has_place = [&](const Value* v) {
    return v == nullptr || v->is_constant() || has_memory(v->type, symbols);
  };
  return std::all_of(node.inputs.begin(), node.inputs.end(), has_place) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), has_place);
}

std::vector<Obstacle> obstacles_of(const Graph& graph, const std::vector<Missing>& missing) {
  std::vector<Obstacle> list;
  for (const auto& [node, why] : missing) {
    const bool interpreted = runs_in_interpreter(*node, graph);
    list.push_back({node->name(), source_operator(*node), why.message, remedy_of(*node, interpreted),
                    only_follows(*node) && why.code == "unknown_shape", interpreted, node->op->reference != nullptr});
  }
  return list;
}

void refuse(const Graph& graph, const std::vector<Missing>& missing, bool allow_reference) {
  double lost = 0;
  for (const Missing& m : missing) lost += flops_of(*m.node);
  const double all = flops_of(graph);
  const std::vector<Obstacle> obstacles = obstacles_of(graph, missing);
  std::string list, behind;
  size_t follow = 0;
  for (const Obstacle& o : obstacles) {
    if (!o.follows) list += fmt::format("\n  {} ({}): {}", o.node, o.op, o.reason);
    if (o.follows && ++follow <= 3) behind += fmt::format("{}{} ({})", behind.empty() ? "" : ", ", o.node, o.op);
  }
  if (follow > 0)
    list += fmt::format("\n  and what is computed from {}, whose shapes are not known: {}{}",
                        obstacles.size() - follow == 1 ? "it" : "them", behind,
                        follow > 3 ? fmt::format(" and {} more", follow - 3) : "");
  const size_t causes = obstacles.size() - follow;
  throw fail(E::uncompilable, "{} operator{} cannot be compiled ({:.1f} % of the model's FLOP can):{}", causes,
             causes == 1 ? "" : "s", all > 0 ? 100 * (1 - lost / all) : 0, list)
      .hint(hint_of(obstacles, allow_reference));
}

}  // namespace opfuse
