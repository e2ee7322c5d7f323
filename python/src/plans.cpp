// Patterns, plans, remarks, and the functions that make them. The interpreter's lock is released while opfuse works:
// models are only read then, and a plan is copied first, since Python may edit it meanwhile.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opfuse/opfuse.hpp>

#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opfuse::python {
namespace {

using Names = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Entries stay where they are for the life of a plan; Python edits them in place.
nb::typed<nb::list, PlanEntry> entries_of(nb::handle self) {
  Plan& plan = nb::cast<Plan&>(self);
  nb::list entries;
  for (const PlanEntry& entry : plan.entries())
    entries.append(nb::cast(const_cast<PlanEntry&>(entry), nb::rv_policy::reference_internal, self));
  return nb::typed<nb::list, PlanEntry>(entries);
}

void bind_patterns(nb::module_& m) {
  nb::class_<PatternSpec>(
      m, "PatternSpec",
      "A fusion pattern of your own. It claims nodes before the catalogue; docs/fusion.md has the two small "
      "languages.")
      .def(
          "__init__",
          [](PatternSpec* self, std::string name, std::string topology, Names where,
             std::map<std::string, std::string> points, std::string module, std::string doc, std::string root,
             int priority) {
            new (self) PatternSpec{std::move(name),   std::move(topology), std::move(where), std::move(points),
                                   std::move(module), std::move(doc),      std::move(root),  priority};
          },
          "name"_a, "topology"_a, "where"_a = Names{}, "points"_a = std::map<std::string, std::string>{},
          "module"_a = "", "doc"_a = "", "root"_a = "", "priority"_a = 1)
      .def_rw("name", &PatternSpec::name)
      .def_rw("topology", &PatternSpec::topology)
      .def_rw("where", &PatternSpec::where)
      .def_rw("points", &PatternSpec::points)
      .def_rw("module", &PatternSpec::module)
      .def_rw("doc", &PatternSpec::doc)
      .def_rw("root", &PatternSpec::root)
      .def_rw("priority", &PatternSpec::priority)
      .def("__repr__", [](const PatternSpec& p) { return "<opfuse.PatternSpec " + p.name + ": " + p.topology + ">"; });
  m.def("pattern_names", &pattern_names, "files"_a = Names{},
        "Names of the patterns of these files, then of the catalogue, in the order that decides between matches of "
        "equal size.");
}

void bind_plan(nb::module_& m) {
  nb::class_<PlanEntry>(m, "PlanEntry", "One candidate group. Set apply before opfuse.apply.")
      .def_ro("id", &PlanEntry::id, "\"ConvBNReLU@relu_node\": stable.")
      .def_ro("rule", &PlanEntry::rule, "Pattern or rule.")
      .def_ro("module", &PlanEntry::module)
      .def_ro("anchor", &PlanEntry::anchor, "The group's output node.")
      .def_ro("nodes", &PlanEntry::nodes)
      .def_rw("apply", &PlanEntry::apply)
      .def_rw("precision", &PlanEntry::precision, "Of its products: \"f32\", \"bf16\", \"f16\" or \"tf32\".")
      .def_ro("reason", &PlanEntry::reason, "Why it was not chosen; empty when it was.")
      .def_ro("bytes_saved", &PlanEntry::bytes_saved)
      .def("__repr__", [](const PlanEntry& e) {
        return "<opfuse.PlanEntry " + e.id +
               (e.apply            ? ", applied>"
                : e.reason.empty() ? ", off>"
                                   : ", " + e.reason + ">");
      });
  nb::class_<Plan>(m, "Plan", "All candidate groups with verdicts: editable, saved as JSON.")
      .def_prop_ro("entries", [](nb::handle self) { return entries_of(self); })
      .def("missed", &Plan::missed, "Candidates that are not applied for a reason of their own.")
      .def("at", &Plan::at, "id"_a, nb::rv_policy::reference_internal, "The candidate of that id, \"Pattern@node\".")
      .def("__getitem__", &Plan::at, "id"_a, nb::rv_policy::reference_internal)
      .def("__len__", [](const Plan& plan) { return plan.entries().size(); })
      .def("__iter__", [](nb::handle self) { return nb::typed<nb::iterator, PlanEntry>(nb::iter(entries_of(self))); })
      .def("modules", &Plan::modules, "Applied modules by name: {\"FusedConvBNReLU\": 32, ...}.")
      .def("json", &Plan::json)
      .def_static("from_json", &Plan::from_json, "text"_a, "model"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("_repr_html_",
           [](nb::handle self) {
             return nb::cast<std::string>(nb::module_::import_("opfuse._notebook").attr("plan_table")(self));
           })
      .def("__repr__", [](const Plan& plan) {
        size_t applied = 0;
        for (const PlanEntry& entry : plan.entries()) applied += entry.apply;
        return "<opfuse.Plan " + std::to_string(applied) + " of " + std::to_string(plan.entries().size()) +
               " candidates applied>";
      });
}

void bind_remarks(nb::module_& m) {
  nb::class_<Remark>(m, "Remark", "Why something is, or is not, fused.")
      .def_ro("kind", &Remark::kind, "\"passed\", \"missed\", \"analysis\" or \"compound\".")
      .def_ro("rule", &Remark::rule)
      .def_ro("anchor", &Remark::anchor)
      .def_ro("code", &Remark::code)
      .def_ro("message", &Remark::message)
      .def_ro("nodes", &Remark::nodes)
      .def_ro("evidence", &Remark::evidence)
      .def_ro("matched", &Remark::matched)
      .def_ro("of", &Remark::of)
      .def_ro("bytes_saved", &Remark::bytes_saved)
      .def("__str__", [](const Remark& r) { return remarks_text({r}); })
      .def("__repr__", [](const Remark& r) {
        return "<opfuse.Remark " + r.kind + " " + r.rule + " at " + r.anchor + ": " + r.code + ">";
      });
  nb::class_<FusionChange>(m, "FusionChange", "An edge that one plan fuses and the other does not.")
      .def_ro("producer", &FusionChange::producer)
      .def_ro("consumer", &FusionChange::consumer)
      .def_ro("tensor", &FusionChange::tensor)
      .def_ro("where", &FusionChange::where, "What makes them one launch, in the plan that fuses them.")
      .def_ro("code", &FusionChange::code)
      .def_ro("message", &FusionChange::message)
      .def_ro("change", &FusionChange::change)
      .def_ro("bytes", &FusionChange::bytes)
      .def_ro("microseconds", &FusionChange::microseconds)
      .def("__repr__", [](const FusionChange& c) {
        return "<opfuse.FusionChange " + c.producer + " -> " + c.consumer + ": " + c.code + ">";
      });
  nb::class_<PlanDiff>(m, "PlanDiff", "Fusions that the second of two plans lost and gained.")
      .def_ro("lost", &PlanDiff::lost)
      .def_ro("gained", &PlanDiff::gained)
      .def_ro("alike", &PlanDiff::alike)
      .def_ro("only_in_first", &PlanDiff::only_in_first)
      .def_ro("only_in_second", &PlanDiff::only_in_second)
      .def_ro("fused_in_first", &PlanDiff::fused_in_first)
      .def_ro("apart_in_second", &PlanDiff::apart_in_second)
      .def_ro("modules", &PlanDiff::modules)
      .def("__str__", [](const PlanDiff& d) { return diff_text(d); })
      .def("__repr__", [](const PlanDiff& d) {
        return "<opfuse.PlanDiff " + std::to_string(d.lost.size()) + " lost, " + std::to_string(d.gained.size()) +
               " gained>";
      });
  m.def("diff_text", &diff_text, "diff"_a, "top"_a = 0, "The difference as `opfuse diff` prints it.");
  m.def("remarks_text", &remarks_text, "remarks"_a, "The remarks as `opfuse explain` prints them.");
}

}  // namespace

void bind_plans(nb::module_& m) {
  bind_patterns(m);
  bind_plan(m);
  bind_remarks(m);
  m.def(
      "plan",
      [](const Model& model, const Target& target, Names only, Names skip, bool rules,
         std::vector<PatternSpec> patterns, Names pattern_files, std::map<std::string, int64_t> dims,
         size_t max_group_nodes, Pairs no_fuse, Pairs fuse, Names precision, std::map<std::string, int64_t> limits) {
        nb::gil_scoped_release release;
        PlanRequest request{std::move(only), std::move(skip), rules, std::move(patterns), std::move(pattern_files)};
        request.dims = std::move(dims);
        request.max_group_nodes = max_group_nodes;
        request.precision = std::move(precision);
        request.no_fuse = std::move(no_fuse), request.fuse = std::move(fuse);
        request.limits = std::move(limits);
        return plan(model, target, request);
      },
      "model"_a, "target"_a, "only"_a = Names{}, "skip"_a = Names{}, "rules"_a = true,
      "patterns"_a = std::vector<PatternSpec>{}, "pattern_files"_a = Names{},
      "dims"_a = std::map<std::string, int64_t>{}, "max_group_nodes"_a = PlanRequest{}.max_group_nodes,
      "no_fuse"_a = Pairs{}, "fuse"_a = Pairs{}, "precision"_a = Names{},
      "limits"_a = std::map<std::string, int64_t>{});
  m.def(
      "apply",
      [](const Model& model, Plan plan) {
        Fused fused = [&] {
          nb::gil_scoped_release release;
          return apply(model, plan);
        }();
        return std::pair(std::move(fused.model), std::move(fused.notes));
      },
      "model"_a, "plan"_a);
  m.def(
      "diff",
      [](Plan first, Plan second) {
        nb::gil_scoped_release release;
        return diff(first, second);
      },
      "first"_a, "second"_a);
  m.def(
      "explain",
      [](const Model& model, Plan plan, std::string node, bool passed, bool missed, std::vector<PatternSpec> patterns,
         Names pattern_files) {
        nb::gil_scoped_release release;
        return explain(model, plan, {std::move(node), passed, missed, std::move(patterns), std::move(pattern_files)});
      },
      "model"_a, "plan"_a, "node"_a = "", "passed"_a = true, "missed"_a = true,
      "patterns"_a = std::vector<PatternSpec>{}, "pattern_files"_a = Names{});
}

}  // namespace opfuse::python
