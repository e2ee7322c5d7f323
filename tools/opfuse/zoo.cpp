// opfuse zoo: the built-in models; `opfuse zoo NAME -o x.onnx` writes one as PyTorch's exporter would.
#include "zoo/zoo.hpp"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "console.hpp"
#include "ir/fir_file.hpp"
#include "onnx/write.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string name, output, batch = "1";
  ZooOptions options;
  bool json = false, force = false;
};

int list_models(const Flags& flags) {
  if (flags.json) {
    Json rows = Json::array();
    for (const ZooModel& model : zoo_models())
      rows.push_back({{"name", model.name}, {"description", model.description}});
    Json out = document("opfuse.zoo/1");
    out["models"] = std::move(rows);
    print_json(out);
    return kOk;
  }
  Table table({"model", "description"});
  for (const ZooModel& model : zoo_models()) table.row({std::string(model.name), std::string(model.description)});
  fmt::print("{}\nuse one as zoo:NAME wherever a model is expected, or write it: opfuse zoo NAME -o NAME.onnx\n",
             table.text());
  return kOk;
}

int write_model(Flags flags) {
  check_output("-o", flags.output, {".onnx", ".fir"}, flags.force);
  try {
    flags.options.batch = Dim::parse(flags.batch);
  } catch (const Error&) {
    throw fail(E::bad_option, "--batch {} is neither a size nor a name", flags.batch);
  }
  const Graph graph = build_zoo(flags.name, flags.options);
  if (flags.output.empty())
    throw fail(E::bad_option, "where should '{}' be written?", flags.name).hint("add -o " + flags.name + ".onnx");
  const bool text = flags.output.size() > 4 && flags.output.substr(flags.output.size() - 4) == ".fir";
  if (text)
    write_fir(graph, flags.output, "fir 1 | zoo:" + flags.name);
  else
    write_onnx(graph, flags.output);
  say(fmt::format("wrote {}: {} nodes", flags.output, graph.nodes().size()));
  return kOk;
}

}  // namespace

std::function<int()> add_zoo(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("NAME", flags->name, "model to write; without it the models are listed");
  app.add_option("-o,--output", flags->output, ".onnx or .fir to write")->type_name("FILE");
  add_force_flag(app, flags->force);
  app.add_option("--batch", flags->batch, "size of the batch dimension, or a name for a symbolic one")
      ->capture_default_str();
  app.add_option("--resolution", flags->options.resolution,
                 "height and width of the input, tokens of a text; 0: the model's own")
      ->capture_default_str();
  app.add_option("--classes", flags->options.classes, "0: the model's own")->capture_default_str();
  app.add_option("--width", flags->options.width, "scales the channel counts")->capture_default_str();
  app.add_option("--opset", flags->options.opset, "13 or 17: how LayerNorm is spelled")->capture_default_str();
  app.add_option("--seed", flags->options.seed, "of the weights")->capture_default_str();
  app.add_flag("--json", flags->json, "the list as JSON");
  return [flags] { return flags->name.empty() ? list_models(*flags) : write_model(*flags); };
}

}  // namespace opfuse::cli
