// Takes a region of several stages apart: one region per stage. What a stage kept tile-local for later ones
// is stored to, and read from, a temporary in memory.
#include "program/work_list.hpp"

namespace opfuse {
namespace {

class Separator {
 public:
  Separator(const LoweredGroup& group, Temporaries& temporaries) : group_(group), temporaries_(temporaries) {}

  std::vector<LoweredGroup> run() {
    for (const Stage& stage : group_.region.stages) {
      locals_.emplace_back();
      for (const StageOutput& output : stage.outputs) locals_.back().push_back(local(output));
    }
    for (size_t s = 0; s < group_.region.stages.size(); ++s) add(s);
    return std::move(parts_);
  }

 private:
  const LoweredGroup& group_;
  Temporaries& temporaries_;
  std::vector<std::vector<const Value*>> locals_;  ///< by stage and output: the temporary, or null
  std::vector<LoweredGroup> parts_;
  std::vector<int> number_;  ///< of the whole region's parameters in the part under construction

  const Value* local(const StageOutput& output) {
    if (output.param >= 0) return nullptr;
    auto value = std::make_unique<Value>();
    value->type = {output.dtype, output.shape};
    temporaries_.push_back(std::move(value));
    return temporaries_.back().get();
  }

  int renumbered(LoweredGroup& part, int param) {
    int& at = number_[static_cast<size_t>(param)];
    if (at < 0) {
      at = static_cast<int>(part.region.params.size());
      part.region.params.push_back(group_.region.params[static_cast<size_t>(param)]);
      part.operands.push_back(group_.operands[static_cast<size_t>(param)]);
    }
    return at;
  }

  static int temporary(LoweredGroup& part, const Value* value, ParamRole role) {
    for (size_t i = 0; i < part.operands.size(); ++i)
      if (part.operands[i].value == value) return static_cast<int>(i);
    part.region.params.push_back({role, value->type});
    part.operands.push_back({value, {}, {}});
    return static_cast<int>(part.region.params.size()) - 1;
  }

  void add(size_t s) {
    number_.assign(group_.region.params.size(), -1);
    LoweredGroup part;
    Stage stage = group_.region.stages[s];
    for (Read& read : stage.reads) {
      if (read.stage < 0) {
        read.index = renumbered(part, read.index);
        continue;
      }
      const Value* value = locals_[static_cast<size_t>(read.stage)][static_cast<size_t>(read.index)];
      read.index = temporary(part, value, ParamRole::input);
      read.stage = -1;
    }
    for (size_t o = 0; o < stage.outputs.size(); ++o) {
      StageOutput& output = stage.outputs[o];
      output.param =
          locals_[s][o] == nullptr ? renumbered(part, output.param) : temporary(part, locals_[s][o], ParamRole::output);
    }
    part.region.stages.push_back(std::move(stage));
    parts_.push_back(std::move(part));
  }
};

}  // namespace

std::vector<LoweredGroup> separate_stages(LoweredGroup group, Temporaries& temporaries) {
  return Separator(group, temporaries).run();
}

}  // namespace opfuse
