// Program -> artifact: kernels generated once per distinct spec (or taken from the disk cache), constants
// packed once per distinct recipe, buffers resolved to (storage, byte offset).
#include "link/build_artifact.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/aligned_bytes.hpp"
#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "base/hash.hpp"
#include "base/parallel.hpp"
#include "cpu/contraction/codes.hpp"
#include "kernel/launch_size.hpp"
#include "kernel/product_type.hpp"
#include "link/distinct_specs.hpp"
#include "link/emit_files.hpp"
#include "link/generators.hpp"
#include "link/intrinsic_code.hpp"
#include "link/kernel_cache.hpp"
#include "link/reference_launch.hpp"
#include "program/body.hpp"
#include "program/levels.hpp"
#include "program/origins.hpp"
#include "program/routine_launches.hpp"
#include "runtime/prepared_constants.hpp"

namespace opfuse {
namespace {

constexpr size_t kConstantAlignment = 64;
constexpr size_t kCodeAlignment = 64;
constexpr size_t kGivenAlignment = sizeof(int64_t);

size_t align_up(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

int position(const std::vector<int>& list, int value) {
  const auto at = std::find(list.begin(), list.end(), value);
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

/// The program for all sizes, then those of the variants.
using Programs = std::vector<const Program*>;

// ---- constants ------------------------------------------------------------------------------------------------

struct PackedConstants {
  std::vector<std::vector<size_t>> offset;  ///< by program and buffer index
  std::vector<size_t> end;                  ///< by program: bytes of its constants and those before
  std::vector<PreparedConstant> prepared;
  std::map<std::vector<uint8_t>, size_t> given;  ///< by launches to their kernels, the first bytes -> their offset
  std::shared_ptr<AlignedBytes> bytes;
};

/// Equal recipes share bytes. Packing runs buffer by buffer, each one parallel inside.
PackedConstants pack_constants(const Programs& programs, const std::set<std::vector<uint8_t>>& given,
                               const StepProgress& progress) {
  PackedConstants packed;
  std::map<std::string, size_t> known;
  std::vector<std::pair<const Buffer*, size_t>> todo;  // with the offset
  size_t end = 0;
  for (const std::vector<uint8_t>& bytes : given)
    packed.given[bytes] = end, end = align_up(end + bytes.size(), kGivenAlignment);
  end = align_up(end, kConstantAlignment);
  for (const Program* program : programs) {
    std::vector<size_t>& offsets = packed.offset.emplace_back(program->buffers.size(), 0);
    for (size_t i = 0; i < program->buffers.size(); ++i) {
      const Buffer& b = program->buffers[i];
      if (b.kind != BufferKind::constant) continue;
      const std::string key =
          hash_bytes(b.constant.data(), b.constant.bytes()).hex() + b.type.text() + "/" + b.layout.text();
      const auto [at, fresh] = known.emplace(key, end);
      offsets[i] = at->second;
      if (!fresh) continue;
      todo.emplace_back(&b, end);
      end = align_up(end + static_cast<size_t>(bytes_of(b).value()), kConstantAlignment);
    }
    packed.end.push_back(end);
  }
  packed.bytes = std::make_shared<AlignedBytes>(end, "packed constants");
  for (const auto& [bytes, offset] : packed.given)
    copy_bytes(packed.bytes->data() + offset, bytes.data(), bytes.size());
  for (size_t k = 0; k < todo.size(); ++k) {
    const Buffer& b = *todo[k].first;
    const Tensor tensor = b.layout.is_dense() ? b.constant : pack(b.constant, b.layout);
    copy_bytes(packed.bytes->data() + todo[k].second, tensor.data(), tensor.bytes());
    if (is_prepared(b.layout))  // a copy: the model's file may change before this is saved
      packed.prepared.push_back({todo[k].second, tensor.bytes(), b.constant.clone(), b.layout});
    if (progress) progress("pack weights", k + 1, todo.size());
  }
  keep_worthwhile(packed.prepared, end);
  return packed;
}

// ---- kernels --------------------------------------------------------------------------------------------------

struct Kernels {
  std::vector<std::vector<size_t>> of_launch;            ///< by program: launch -> kernel
  std::vector<std::vector<LaunchConstant>> constant_of;  ///< by program, of launches
  std::vector<CachedKernel> kernels;
  std::vector<bool> cached;  ///< by kernel: it came from the disk
};

Kernels make_kernels(const Programs& programs, const TargetInfo& target, const ArtifactOptions& options) {
  Kernels result;
  DistinctSpecs distinct = distinct_specs(programs, target);
  const std::vector<KernelSpec>& specs = distinct.specs;
  result.of_launch = std::move(distinct.of_launch);
  result.constant_of = std::move(distinct.constant_of);
  const bool emits = options.emit_llvm || options.emit_assembly || options.emit_cuda || options.text_only;
  // emulated kernels share one library: they are not files of their own
  const KernelCache cache(options.cache && !emits && !target.emulated ? KernelCache::default_folder() : "", target);
  result.kernels.resize(specs.size());
  result.cached.assign(specs.size(), true);
  std::vector<KernelSpec> missing;
  std::vector<size_t> slots;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (auto hit = cache.load(specs[i], options.brief)) {
      result.kernels[i] = std::move(*hit);
    } else {
      result.cached[i] = false;
      missing.push_back(specs[i]);
      slots.push_back(i);
    }
  }
  if (missing.empty()) return result;
  CodegenOptions codegen{options.emit_llvm, options.emit_assembly, options.emit_cuda,
                         options.text_only, options.threads,       {}};
  if (options.progress)
    codegen.progress = [&](size_t done, size_t total) { options.progress("generate kernels", done, total); };
  codegen.intrinsics = intrinsics_of(missing, target);
  codegen.brief = options.brief;
  const LinkedCode linked = generator_for(target).generate(missing, target, codegen);
  OPFUSE_CHECK(linked.kernels.size() == missing.size(), "{} kernels for {} specs", linked.kernels.size(),
               missing.size());
  for (size_t k = 0; k < missing.size(); ++k) {
    CachedKernel& kernel = result.kernels[slots[k]];
    kernel.code = linked.kernels[k];
    const auto begin = linked.bytes.begin() + static_cast<std::ptrdiff_t>(kernel.code.begin);
    kernel.bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(kernel.code.size));
    kernel.code.offset -= kernel.code.begin;
    kernel.code.begin = 0;
    cache.store(missing[k], kernel, options.brief);
  }
  return result;
}

std::string name_of(const Variant& variant) {
  ArtifactVariant named;
  named.when = variant.when;
  named.stretches = variant.stretches;
  return text_of(named);
}

std::vector<KernelTime> kernel_times(const Programs& programs, const std::vector<Variant>& variants,
                                     const Kernels& kernels) {
  std::vector<KernelTime> times(kernels.kernels.size());
  for (size_t p = programs.size(); p-- > 0;)
    for (size_t i = programs[p]->launches.size(); i-- > 0;)
      if (const size_t k = kernels.of_launch[p][i]; k != kNoKernel)
        times[k] = {programs[p]->launches[i].name, kernels.kernels[k].code.symbol, kernels.kernels[k].code.compile_ms,
                    kernels.cached[k], p == 0 ? "" : name_of(variants[p - 1])};
  return times;
}

// ---- assembly of the parts --------------------------------------------------------------------------------------

std::vector<ArtifactBuffer> artifact_buffers(const Program& program, const std::vector<size_t>& constants) {
  std::vector<ArtifactBuffer> buffers;
  const std::vector<int> roots = roots_of(program);
  const std::vector<Dim> origins = origins_in_roots(program);
  const Levels levels(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const int root_index = roots[i];
    const Buffer& root = program.buffers[static_cast<size_t>(root_index)];
    const Dim offset = origins[i] * Dim(static_cast<int64_t>(byte_size(root.type.dtype)));
    ArtifactBuffer b{Storage::arena, -1, offset, bytes_of(program.buffers[i]), program.buffers[i].name};
    switch (root.kind) {
      case BufferKind::input:
        b.storage = Storage::input, b.root = position(program.inputs, root_index);
        break;
      case BufferKind::output:
        b.storage = Storage::output, b.root = position(program.outputs, root_index);
        break;
      case BufferKind::constant:
        b.storage = Storage::constant;
        b.offset = b.offset + Dim(static_cast<int64_t>(constants[static_cast<size_t>(root_index)]));
        break;
      case BufferKind::intermediate:
        b.offset = b.offset + root.arena_offset;
        if (const int level = levels.of(root); level > 0) b.root = level;
        break;
    }
    buffers.push_back(std::move(b));
  }
  return buffers;
}

std::vector<ArtifactTensor> artifact_tensors(const Program& program, const std::vector<int>& buffers) {
  std::vector<ArtifactTensor> tensors;
  for (int b : buffers) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    TensorType type = buffer.type;
    if (!buffer.layout.is_dense()) type.shape = Shape(buffer.layout.physical_extents(type.shape));
    tensors.push_back({buffer.name, type, b});
  }
  return tensors;
}

struct Owned {
  std::vector<uint8_t> code;
  std::shared_ptr<AlignedBytes> constants;
};

std::vector<size_t> lay_out_code(const Kernels& kernels, std::vector<uint8_t>& code) {
  std::vector<size_t> offsets;
  std::map<std::string, size_t> placed;  // emulated kernels are entries of one image
  for (const CachedKernel& kernel : kernels.kernels) {
    if (kernel.code.device.block > 0) {
      const auto [at, fresh] = placed.emplace(hash_bytes(kernel.bytes.data(), kernel.bytes.size()).hex(), code.size());
      offsets.push_back(at->second);
      if (!fresh) continue;
    } else {
      offsets.push_back(code.size() + kernel.code.offset);
    }
    code.insert(code.end(), kernel.bytes.begin(), kernel.bytes.end());
    code.resize(align_up(code.size(), kCodeAlignment));
  }
  return offsets;
}

/// A cost as an expression over the symbols. Work is linear in each leading dimension, so the values with every
/// symbol at 1, and with one of them at 2, determine it (exact for a batch dimension).
struct LaunchCost {
  Dim flops, read, written;
};

LaunchCost cost_of(const Program& program, const Region& region) {
  SymbolValues ones;
  for (const std::string& symbol : program.symbols) ones[symbol] = 1;
  const RegionCost base = cost_of(region, ones);
  const auto whole = [](double value) { return Dim(static_cast<int64_t>(value)); };
  LaunchCost cost{whole(base.flops), whole(base.bytes_read), whole(base.bytes_written)};
  for (const std::string& symbol : program.symbols) {
    SymbolValues twice = ones;
    twice[symbol] = 2;
    const RegionCost more = cost_of(region, twice);
    const Dim steps = Dim::symbol(symbol) - Dim(1);
    cost.flops = cost.flops + whole(more.flops - base.flops) * steps;
    cost.read = cost.read + whole(more.bytes_read - base.bytes_read) * steps;
    cost.written = cost.written + whole(more.bytes_written - base.bytes_written) * steps;
  }
  return cost;
}

ArtifactLaunch artifact_launch(const Program& program, const Launch& launch, const KernelCode& code, size_t entry) {
  ArtifactLaunch out;
  out.name = launch.name;
  out.symbol = code.symbol;
  out.pattern = launch.pattern;
  out.sources = launch.sources;
  out.code_offset = entry;
  out.buffers = launch.buffers;
  out.parts = code.parts;
  out.scratch_bytes = code.scratch_bytes;
  if (const DeviceKernel& d = code.device; d.block > 0)
    out.device = {d.grid,         d.block,       code.size,       d.registers,
                  d.shared_bytes, d.spill_bytes, d.launch_shared, d.launch_shared_most,
                  d.maps};
  out.schedule = launch.schedule.text();
  out.products = product_type(launch.region);
  const LaunchCost cost = cost_of(program, launch.region);
  const Body* body = body_of(program, static_cast<size_t>(&launch - program.launches.data()));
  const Dim times = body && always_runs(*body) ? body->times : Dim(1);
  out.flops = cost.flops * times;
  out.bytes_read = cost.read * times;
  out.bytes_written = cost.written * times;
  return out;
}

/// What a launch gives its kernel: a constant behind its operands.
void give_constant(ArtifactProgram& a, ArtifactLaunch& launch, const LaunchConstant& given, size_t offset) {
  launch.buffers.push_back(static_cast<int>(a.buffers.size()));
  const auto bytes = static_cast<int64_t>(given.bytes.size());
  a.buffers.push_back({Storage::constant, -1, Dim(static_cast<int64_t>(offset)), Dim(bytes),
                       given.size > 0 ? kLaunchSize : "launch literals"});
  if (given.size > 0) launch.parts = launch.parts.substitute({{kLaunchSize, given.size}});
}

/// How the launches of bodies follow them.
void follow_bodies(const Program& program, std::vector<ArtifactLaunch>& launches) {
  for (size_t l = 0; l < launches.size(); ++l)
    for (size_t i = 0; i < program.launches[l].steps.size(); ++i) {
      const StepOperand& operand = program.launches[l].steps[i];
      const bool moves = operand.moves || operand.before;
      const int buffer = program.launches[l].buffers[i];
      launches[l].steps.push_back({moves ? moved_bytes(program, *body_of(program, l), buffer) : Dim(0), operand.first});
    }
}

ArtifactLaunch routine_launch(const Program& program, const Launch& launch) {
  ArtifactLaunch out;
  out.name = launch.name;
  out.symbol = launch.schedule.skeleton;
  out.sources = launch.sources;
  out.schedule = "routine";
  out.routine.call = *routine_of(launch);
  out.routine.inputs = static_cast<int>(launch.buffers.size() - results_of_routine(launch));
  for (const int b : launch.buffers) {
    out.buffers.push_back(b);
    if (b < 0) {
      out.routine.values.emplace_back();
      continue;
    }
    const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    out.routine.values.push_back({buffer.type, buffer.layout, buffer.strides});
  }
  return out;
}

/// Launches of pieces have a pattern, the device's; those of the interpreter have none.
ArtifactLaunch host_launch(const Program& program, const Launch& launch, const ArtifactOptions& options) {
  if (is_routine(launch)) return routine_launch(program, launch);
  const bool placed = !launch.pattern.empty();
  OPFUSE_CHECK(!placed || options.placed_launch, "{} runs on a device that nobody opened", launch.name);
  ArtifactLaunch out;
  out.name = launch.name;
  out.symbol = placed ? "plug-in" : "interpreter";
  out.pattern = launch.pattern;
  out.sources = launch.sources;
  out.buffers = launch.buffers;
  out.schedule = placed ? "placed" : "reference";
  if (placed)
    out.placed = options.placed_launch(program, launch);
  else
    out.host = reference_launch(program, launch, options.reference_graph);
  return out;
}

struct Assembly {
  const Kernels& kernels;
  const std::vector<size_t>& entries;  ///< of kernels, in the code
  const PackedConstants& constants;
  const TargetInfo& target;
};

/// One of the programs, with its own buffers, on the code and constants that all share.
ArtifactProgram assemble(const Program& program, size_t index, const Assembly& all, const ArtifactOptions& options) {
  ArtifactProgram a;
  a.symbols = program.symbols;
  a.buffers = artifact_buffers(program, all.constants.offset[index]);
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    const size_t kernel = all.kernels.of_launch[index][i];
    if (kernel != kNoKernel) {
      a.launches.push_back(artifact_launch(program, launch, all.kernels.kernels[kernel].code, all.entries[kernel]));
      if (const LaunchConstant& given = all.kernels.constant_of[index][i]; !given.bytes.empty())
        give_constant(a, a.launches.back(), given, all.constants.given.at(given.bytes));
      continue;
    }
    if (!all.target.traits.on_host)
      throw fail(E::uncompilable, "'{}' would run in the interpreter, which {} cannot call", launch.name,
                 all.target.name)
          .hint("--allow-reference is for cpu targets");
    a.launches.push_back(host_launch(program, launch, options));
  }
  a.arena_bytes = program.arena_bytes;
  a.intermediate_bytes = program.intermediate_bytes;
  for (const Body& body : program.bodies)
    a.bodies.push_back({body.first, body.launches, body.times, body.kind == BodyKind::steps, body.symbol, body.from});
  follow_bodies(program, a.launches);
  for (const Buffer& b : program.buffers) a.layouts.emplace_back(b.name, b.layout.text());
  return a;
}

/// Bytes of the code up to the last kernel that a program is the first to use.
std::vector<size_t> code_ends(const Kernels& kernels, const std::vector<size_t>& entries, size_t bytes) {
  std::vector<size_t> ends;
  size_t used = 0;
  for (const std::vector<size_t>& of_launch : kernels.of_launch) {
    for (size_t k : of_launch)
      if (k != kNoKernel) used = std::max(used, k + 1);
    ends.push_back(used < entries.size() ? entries[used] - kernels.kernels[used].code.offset : bytes);
  }
  return ends;
}

void add_variants(Artifact& a, const std::vector<Variant>& variants, const Assembly& all, ArtifactOptions options) {
  const std::vector<size_t> code = code_ends(all.kernels, all.entries, a.code.size());
  for (size_t i = 0; i < variants.size(); ++i) {
    const Variant& variant = variants[i];
    options.reference_graph = variant.graph;
    a.variants.push_back({assemble(variant.program, i + 1, all, options), variant.when, code[i + 1] - code[i],
                          all.constants.end[i + 1] - all.constants.end[i], variant.stretches});
    for (const std::string& note : variant.program.notes) a.notes.push_back(name_of(variant) + ": " + note);
  }
}

void emit_files(const Programs& programs, const std::vector<Variant>& variants, const Kernels& kernels,
                const std::string& folder) {
  std::vector<KernelCode> codes;
  for (const CachedKernel& kernel : kernels.kernels) codes.push_back(kernel.code);
  for (size_t p = 0; p < programs.size(); ++p)
    emit_kernel_files(*programs[p], kernels.of_launch[p], codes,
                      p == 0 ? folder : folder + "/" + name_of(variants[p - 1]));
}

}  // namespace

Artifact build_artifact(const Program& program, const TargetInfo& target, const ArtifactOptions& options) {
  return build_artifact(program, {}, target, options);
}

/// What any kernel needs, in the target's order.
static std::vector<std::string> features_of(const Programs& programs, const TargetInfo& target) {
  std::set<std::string> needed;
  for (const Program* program : programs)
    for (const Launch& launch : program->launches)
      if (!launch.reference)
        for (const std::string& feature : needed_features(launch.region, launch.schedule, target))
          needed.insert(feature);
  std::vector<std::string> features = target.features;
  std::erase_if(features, [&](const std::string& f) {
    return !needed.contains(f) && std::find(target.beside.begin(), target.beside.end(), f) != target.beside.end();
  });
  return features;
}

Artifact build_artifact(const Program& program, const std::vector<Variant>& variants, const TargetInfo& target,
                        const ArtifactOptions& options) {
  Programs programs = {&program};
  for (const Variant& variant : variants) programs.push_back(&variant.program);
  const Kernels kernels = make_kernels(programs, target, options);
  std::set<std::vector<uint8_t>> given;
  for (const std::vector<LaunchConstant>& of : kernels.constant_of)
    for (const LaunchConstant& constant : of)
      if (!constant.bytes.empty()) given.insert(constant.bytes);
  const PackedConstants constants = pack_constants(programs, given, options.progress);
  auto owned = std::make_shared<Owned>();
  owned->constants = constants.bytes;
  const std::vector<size_t> entries = lay_out_code(kernels, owned->code);
  const Assembly all{kernels, entries, constants, target};

  Artifact a;
  static_cast<ArtifactProgram&>(a) = assemble(program, 0, all, options);
  a.target = target.name;
  a.cpu_features = features_of(programs, target);
  a.model_hash = options.model_hash;
  a.plan_json = options.plan_json;
  a.inputs = artifact_tensors(program, program.inputs);
  a.outputs = artifact_tensors(program, program.outputs);
  a.notes = program.notes;
  a.code = owned->code;
  a.constants = owned->constants->span();
  a.prepared = constants.prepared;
  a.owner = owned;
  add_variants(a, variants, all, options);
  if (options.kernel_times) *options.kernel_times = kernel_times(programs, variants, kernels);
  if (!options.emit_dir.empty()) emit_files(programs, variants, kernels, options.emit_dir);
  return a;
}

}  // namespace opfuse
