// The emitters already unroll, vectorise and keep accumulators in variables, so the pipeline only has to
// promote those, share subexpressions and move invariant address arithmetic out of loops. No vectoriser,
// no unroller, no fast-math: what the numbers are is decided by the emitter alone.
#include "cpu/emit/module.hpp"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <memory>
#include <mutex>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "base/stopwatch.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse::cpu {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr size_t kKernelAlignment = 64;
constexpr size_t kGeneralRegisters = 16;

std::unique_ptr<llvm::LLVMTargetMachine> target_machine(const TargetInfo& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (!t) throw fail(E::codegen_failed, "LLVM has no x86-64 target: {}", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.DataSections = false;
  options.FunctionSections = false;
  // every code-generating target derives from LLVMTargetMachine
  return std::unique_ptr<llvm::LLVMTargetMachine>(static_cast<llvm::LLVMTargetMachine*>(
      t->createTargetMachine(kTriple, target.llvm_cpu, "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                             llvm::CodeGenOptLevel::Default)));
}

/// Pointers of operands are loaded where they are used once: more of them than registers would be spilled, one by one.
void sink_operands(llvm::Function& function) {
  std::vector<llvm::LoadInst*> pointers;
  for (llvm::Instruction& i : function.getEntryBlock()) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(&i);
    if (load && load->getType()->isPointerTy() && load->hasMetadata(llvm::LLVMContext::MD_invariant_load))
      pointers.push_back(load);
  }
  if (pointers.size() <= kGeneralRegisters) return;
  for (llvm::LoadInst* load : pointers) {
    auto* user = load->hasOneUse() ? llvm::dyn_cast<llvm::Instruction>(load->user_back()) : nullptr;
    if (user && user->getParent() == load->getParent() && !llvm::isa<llvm::PHINode>(user)) load->moveBefore(user);
  }
}

void optimise(llvm::Function& function, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager hoist;
  hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(hoist), true));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.run(function, functions);
  sink_operands(function);
}

/// TargetPassConfig keeps it for its own; addISelPasses() is this behind passes on IR.
struct InstructionSelection : llvm::TargetPassConfig {
  static bool add(llvm::TargetPassConfig& config) { return (config.*&InstructionSelection::addCoreISelPasses)(); }
};

/// addISelPasses() with the passes on IR that code needs, but none that optimises: loop strength reduction and what
/// selecting instructions makes of its work take a quarter of a kernel's time, and give its code up to 3 %.
bool add_brief_selection(llvm::legacy::PassManager& passes, llvm::TargetPassConfig& config,
                         llvm::TargetMachine& machine) {
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createPreISelIntrinsicLoweringPass());
  machine.setOptLevel(llvm::CodeGenOptLevel::None);
  config.addIRPasses();
  machine.setOptLevel(llvm::CodeGenOptLevel::Default);
  config.addCodeGenPrepare();
  config.addISelPrepare();
  return InstructionSelection::add(config);
}

/// addPassesToEmitFile without the machine scheduler and combiner: the emitter's order of instructions is meant (every
/// register of a tile holds an accumulator). Moving loads up costs spills, and so does a tree of sums of i32 in place
/// of a chain, whose products all wait at once (vpmaddwd).
std::vector<char> emit_file(llvm::Module& module, llvm::LLVMTargetMachine& machine, llvm::CodeGenFileType type,
                            bool brief = false) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  auto* information = new llvm::MachineModuleInfoWrapperPass(&machine);  // owned by the pass manager
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->disablePass(&llvm::MachineSchedulerID);
  config->disablePass(&llvm::MachineCombinerID);
  passes.add(config);
  passes.add(information);
  if (brief ? add_brief_selection(passes, *config, machine) : config->addISelPasses())
    throw fail(E::codegen_failed, "LLVM cannot select instructions for this target");
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, type, information->getMMI().getContext()))
    throw fail(E::codegen_failed, "LLVM cannot emit code for this target");
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

/// LLVM IR -> object, as it stands: no pass but those that select instructions.
std::string object_of_text(const IntrinsicCode& code, llvm::LLVMTargetMachine& machine) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  const auto module = llvm::parseAssembly(llvm::MemoryBufferRef(code.text, code.source), problem, context);
  if (!module)
    throw fail(E::codegen_failed, "{}:{}:{}: {}", code.source, problem.getLineNo(), problem.getColumnNo() + 1,
               problem.getMessage().str());
  module->setTargetTriple(kTriple);
  module->setDataLayout(machine.createDataLayout());
  const std::vector<char> object = emit_file(*module, machine, llvm::CodeGenFileType::ObjectFile);
  return {object.begin(), object.end()};
}

/// The tile that a kernel calls, as an object; nullopt: it calls none.
std::optional<IntrinsicCode> intrinsic_for(const KernelSpec& spec, const CodegenOptions& options,
                                           llvm::LLVMTargetMachine& machine) {
  if (spec.schedule.skeleton != "intrinsic") return std::nullopt;
  const auto at = options.intrinsics.find(spec.schedule.get("composite", -1));
  if (at == options.intrinsics.end()) throw fail(E::codegen_failed, "the kernel calls a tile that nobody gave");
  IntrinsicCode code = at->second;
  if (!code.text.empty()) code.object = object_of_text(code, machine);
  return code;
}

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

}  // namespace

CompiledKernel compile_kernel(const KernelSpec& spec, const TargetInfo& target, const CodegenOptions& options) {
  const Stopwatch time;
  CompiledKernel result;
  const KernelSpec simple = as_emitted(skeletons(), spec);
  result.code.symbol = kernel_symbol(simple);
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  auto machine = target_machine(target);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  verify(skeletons(), spec, target);
  Kernel kernel(module, simple, target, result.code.symbol);
  emit_kernel(kernel);
  kernel.finish();
  optimise(*kernel.function, *machine);
  result.code.parts = kernel.parts;
  result.code.scratch_bytes = kernel.scratch_bytes;
  if (options.emit_llvm) result.code.llvm_ir = text_of(module);
  if (options.emit_assembly) {
    auto copy = llvm::CloneModule(module);
    const auto text = emit_file(*copy, *machine, llvm::CodeGenFileType::AssemblyFile, options.brief);
    result.code.assembly.assign(text.begin(), text.end());
  }
  const auto called = intrinsic_for(spec, options, *machine);
  result.flat = link_object(emit_file(module, *machine, llvm::CodeGenFileType::ObjectFile, options.brief),
                            result.code.symbol, called ? &*called : nullptr);
  result.code.size = result.flat.bytes.size();
  result.code.compile_ms = time.milliseconds();
  return result;
}

LinkedCode generate_kernels(const std::vector<KernelSpec>& kernels, const TargetInfo& target,
                            const CodegenOptions& options) {
  std::vector<CompiledKernel> compiled(kernels.size());
  std::mutex mutex;
  size_t done = 0;
  parallel_for(
      static_cast<int64_t>(kernels.size()),
      [&](int64_t i) {
        try {
          compiled[static_cast<size_t>(i)] = compile_kernel(kernels[static_cast<size_t>(i)], target, options);
        } catch (Error& error) {
          throw error.during("generate " + kernel_symbol(kernels[static_cast<size_t>(i)]));
        }
        if (!options.progress) return;
        const std::lock_guard lock(mutex);
        options.progress(++done, kernels.size());
      },
      options.threads);
  LinkedCode linked;
  for (CompiledKernel& kernel : compiled) {
    linked.bytes.resize((linked.bytes.size() + kKernelAlignment - 1) / kKernelAlignment * kKernelAlignment, 0xCC);
    kernel.code.begin = linked.bytes.size();
    kernel.code.offset = linked.bytes.size() + kernel.flat.entry;
    linked.bytes.insert(linked.bytes.end(), kernel.flat.bytes.begin(), kernel.flat.bytes.end());
    linked.kernels.push_back(std::move(kernel.code));
  }
  return linked;
}

}  // namespace opfuse::cpu
