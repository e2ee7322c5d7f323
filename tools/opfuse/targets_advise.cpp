// opfuse targets advise: plans the model for the target, and ranks the rows that its file lacks.
#include "targets_advise.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compile_model.hpp"
#include "console.hpp"
#include "driver/compilation.hpp"
#include "fusion/user/target_advice.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {

int advise_target(const std::string& model, const std::string& name, const DimensionFlags& dimensions, bool json) {
  const TargetInfo target = parse_target(name);
  const GivenModel given = open_graph(model, "targets advise", {.fix = Fix::all});
  Compilation compilation(*given.graph, target,
                          compilation_options(given_dimensions(*given.graph, dimensions), PlanFlags{}));
  compilation.run_to(Milestone::planned);
  const std::vector<Advice> all = target_advice(compilation.prepared, compilation.plan, target);
  if (json) {
    Json out = document("opfuse.targets-advise/1");
    out.update({{"model", model}, {"target", target.name}, {"lacks", Json::array()}});
    for (const Advice& a : all)
      out["lacks"].push_back({{"lacks", a.lacks},
                              {"code", a.code},
                              {"first", a.message},
                              {a.operators ? "nodes" : "edges", a.edges},
                              {"bytes", a.bytes},
                              {"microseconds", a.microseconds}});
    print_json(out);
    return kOk;
  }
  fmt::print("{} on {}: {} group{}\n", model, target.name, compilation.plan.applied().size(),
             compilation.plan.applied().size() == 1 ? "" : "s");
  for (const Advice& a : all) fmt::print("  {}\n    {}: {}\n", sentence_of(a), a.code, a.message);
  if (all.empty()) fmt::print("  its file lacks nothing for this model\n");
  return kOk;
}

}  // namespace opfuse::cli
