// Checks every invariant of a graph. All problems are collected; type errors of a model surface as the
// user error they are, broken bookkeeping as an internal one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/body.hpp"
#include "ir/located.hpp"

namespace opfuse {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::vector<std::string> run() {
    values();
    nodes();
    uses();
    for (const Value* v : graph_.outputs()) {
      if (!owned_.contains(v)) problem("an output is not a value of the graph");
    }
    if (problems_.empty()) types();
    return std::move(problems_);
  }

 private:
  const Graph& graph_;
  std::vector<std::string> problems_;
  std::unordered_set<const Value*> owned_;
  std::unordered_map<const Node*, size_t> place_;

  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  static std::string label(const Value* v) {
    return v->name.empty() ? fmt::format("%{}", v->id) : fmt::format("%{} \"{}\"", v->id, v->name);
  }

  void values() {
    std::unordered_set<std::string_view> names;
    int last = -1;
    const std::unordered_set<const Value*> inputs(graph_.inputs().begin(), graph_.inputs().end());
    for (const Value* v : graph_.values()) {
      owned_.insert(v);
      if (v->id <= last) problem("value {} is out of order", label(v));
      last = v->id;
      if (!v->name.empty() && !names.insert(v->name).second) problem("two values are called \"{}\"", v->name);
      const bool input = inputs.contains(v);
      if (v->is_constant() + input + (v->producer != nullptr) != 1)
        problem("value {} is not exactly one of input, constant, result", label(v));
      if (v->is_constant() && !(v->constant->type() == v->type)) {
        problem("constant {} holds {} but is declared {}", label(v), v->constant->type().text(), v->type.text());
      }
    }
  }

  void nodes() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node* node = graph_.nodes()[i];
      place_[node] = i;
      if (node->op == nullptr) {
        problem("node #{} has no operator", node->id);
        continue;
      }
      for (size_t k = 0; k < node->outputs.size(); ++k) {
        const Value* v = node->outputs[k];
        if (!owned_.contains(v) || v->producer != node || v->result != k)
          problem("result {} of {} is not its own", k, node->name());
      }
      for (const Value* v : node->inputs) {
        if (v == nullptr) continue;
        if (!owned_.contains(v)) {
          problem("{} reads a value of another graph", node->name());
        } else if (v->producer != nullptr && !place_.contains(v->producer)) {
          problem("{} is read by {} before it is written", label(v), node->name());
        }
      }
      if (node->op->has_body != (node->body != nullptr))
        problem("{} ({}) {} a body", node->name(), node->op->name, node->body ? "has" : "lacks");
      if (node->body) body(*node);
    }
  }

  void body(const Node& node) {
    const Graph& inner = *node.body;
    if (inner.inputs().size() != node.inputs.size() || inner.outputs().size() != node.outputs.size()) {
      problem("{} has {} inputs and {} outputs, its body {} and {}", node.name(), node.inputs.size(),
              node.outputs.size(), inner.inputs().size(), inner.outputs().size());
      return;
    }
    try {
      body_types(node);
    } catch (const Error& error) {
      problem("the body of {}: {}", node.name(), error.diagnostic().message);
    }
    for (std::string& p : Verifier(inner).run()) problem("in the body of {}: {}", node.name(), p);
  }

  void body_types(const Node& node) {
    const Graph& inner = *node.body;
    const std::vector<TensorType> taken = body_input_types(*node.op, node.attrs(), types_of(node.inputs));
    const std::vector<TensorType> given = body_result_types(*node.op, node.attrs(), types_of(inner.outputs()));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != nullptr && !(taken[i] == inner.inputs()[i]->type)) {
        problem("input {} of {} is {}, its body expects {}", i, node.name(), taken[i].text(),
                inner.inputs()[i]->type.text());
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!(node.outputs[i]->type == given[i])) {
        problem("output {} of {} is {}, its body gives {}", i, node.name(), node.outputs[i]->type.text(),
                given[i].text());
      }
    }
  }

  void uses() {
    std::unordered_map<const Value*, size_t> returned;
    for (const Value* v : graph_.outputs()) ++returned[v];
    std::unordered_map<const Value*, std::vector<std::pair<const Node*, size_t>>> readings;  // as `uses` must be
    for (const Node* node : graph_.nodes()) {
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        if (owned_.contains(node->inputs[i])) readings[node->inputs[i]].emplace_back(node, i);
      }
    }
    for (const Value* v : graph_.values()) {
      auto& read = readings[v];
      std::vector<std::pair<const Node*, size_t>> recorded;
      for (const Use& use : v->uses) recorded.emplace_back(use.node, use.index);
      std::sort(read.begin(), read.end());  // addresses decide nothing: the sets are compared, not walked
      std::sort(recorded.begin(), recorded.end());
      for (const auto& [node, i] : read) {
        const auto [from, to] = std::equal_range(recorded.begin(), recorded.end(), std::pair(node, i));
        if (to - from != 1) problem("input {} of {} is not recorded as a use of {}", i, node->name(), label(v));
      }
      if (read.size() != recorded.size())
        problem("{} has {} uses but {} readers", label(v), recorded.size(), read.size());
      if (v->producer != nullptr && !place_.contains(v->producer))
        problem("{} is the result of a node outside the graph", label(v));
      if (const size_t times = returned[v]; times != v->as_output)
        problem("{} is an output {} times, recorded are {}", label(v), times, v->as_output);
    }
  }

  void types() {
    for (const Node* node : graph_.nodes()) {
      if (node->body) continue;
      std::vector<TensorType> inferred;
      try {
        inferred = infer_node(*node->op, node->attrs(), node->inputs, node->outputs.size());
      } catch (Error& error) {
        if (error.diagnostic().name == "unknown_dimension") continue;  // declared where inference cannot know
        throw located(std::move(error), *node->op, node->inputs, node->sources);
      }
      for (size_t i = 0; i < inferred.size(); ++i) {
        if (!compatible(inferred[i], node->outputs[i]->type)) {
          problem("{} is declared {} but {} gives {}", label(node->outputs[i]), node->outputs[i]->type.text(),
                  node->op->name, inferred[i].text());
        }
      }
    }
  }
};

}  // namespace

void verify(const Graph& graph) {
  const std::vector<std::string> problems = Verifier(graph).run();
  if (!problems.empty()) throw fail(E::internal, "the graph is invalid: {}", fmt::join(problems, "; "));
}

}  // namespace opfuse
