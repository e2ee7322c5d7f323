// Program -> artifact: kernels generated once per distinct spec (or taken from the disk cache), constants
// packed once per distinct recipe, buffers resolved to (storage, byte offset).
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "base/parallel.hpp"
#include "driver/emit_files.hpp"
#include "driver/generators.hpp"
#include "driver/kernel_cache.hpp"
#include "driver/pipeline.hpp"
#include "driver/reference_launch.hpp"

namespace opfuse {
namespace {

constexpr size_t kConstantAlignment = 64;
constexpr size_t kCodeAlignment = 64;
constexpr size_t kNoKernel = static_cast<size_t>(-1);  ///< a reference launch

size_t align_up(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

int position(const std::vector<int>& list, int value) {
  const auto at = std::find(list.begin(), list.end(), value);
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

// ---- constants ------------------------------------------------------------------------------------------------

struct PackedConstants {
  std::vector<size_t> offset;  ///< by buffer index
  std::shared_ptr<std::vector<uint8_t>> bytes = std::make_shared<std::vector<uint8_t>>();
};

/// Equal recipes share bytes. Packing runs buffer by buffer, each one parallel inside.
PackedConstants pack_constants(const Program& program, const StepProgress& progress) {
  PackedConstants packed;
  packed.offset.resize(program.buffers.size(), 0);
  std::map<std::string, size_t> known;
  std::vector<std::pair<size_t, size_t>> todo;  // buffer, offset
  size_t end = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    if (b.kind != BufferKind::constant) continue;
    const std::string key =
        hash_bytes(b.constant.data(), b.constant.bytes()).hex() + b.type.text() + "/" + b.layout.text();
    const auto [at, fresh] = known.emplace(key, end);
    packed.offset[i] = at->second;
    if (!fresh) continue;
    todo.emplace_back(i, end);
    end = align_up(end + static_cast<size_t>(bytes_of(b).value()), kConstantAlignment);
  }
  packed.bytes->resize(end);
  for (size_t k = 0; k < todo.size(); ++k) {
    const Buffer& b = program.buffers[todo[k].first];
    const Tensor tensor = b.layout.is_dense() ? b.constant : pack(b.constant, b.layout);
    std::memcpy(packed.bytes->data() + todo[k].second, tensor.data(), tensor.bytes());
    if (progress) progress("pack weights", k + 1, todo.size());
  }
  return packed;
}

// ---- kernels --------------------------------------------------------------------------------------------------

struct Kernels {
  std::vector<size_t> of_launch;  ///< launch -> kernel
  std::vector<CachedKernel> kernels;
  std::vector<bool> cached;  ///< by kernel: it came from the disk
};

Kernels make_kernels(const Program& program, const TargetInfo& target, const ArtifactOptions& options) {
  Kernels result;
  std::vector<KernelSpec> specs;
  std::map<std::string, size_t> known;
  for (const Launch& launch : program.launches) {
    if (launch.reference) {
      result.of_launch.push_back(kNoKernel);
      continue;
    }
    KernelSpec spec = kernel_spec(program, launch);
    const auto [at, fresh] = known.emplace(spec.text(), specs.size());
    result.of_launch.push_back(at->second);
    if (fresh) specs.push_back(std::move(spec));
  }
  const bool emits = options.emit_llvm || options.emit_assembly || options.emit_cuda || options.text_only;
  // emulated kernels share one library: they are no files of their own
  const KernelCache cache(options.cache && !emits && !target.emulated ? KernelCache::default_folder() : "", target);
  result.kernels.resize(specs.size());
  result.cached.assign(specs.size(), true);
  std::vector<KernelSpec> missing;
  std::vector<size_t> slots;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (auto hit = cache.load(specs[i])) {
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
    cache.store(missing[k], kernel);
  }
  return result;
}

std::vector<KernelTime> kernel_times(const Program& program, const Kernels& kernels) {
  std::vector<KernelTime> times(kernels.kernels.size());
  for (size_t i = program.launches.size(); i-- > 0;)
    if (const size_t k = kernels.of_launch[i]; k != kNoKernel)
      times[k] = {program.launches[i].name, kernels.kernels[k].code.symbol, kernels.kernels[k].code.compile_ms,
                  kernels.cached[k]};
  return times;
}

// ---- assembly of the parts --------------------------------------------------------------------------------------

std::vector<ArtifactBuffer> artifact_buffers(const Program& program, const PackedConstants& constants) {
  std::vector<ArtifactBuffer> buffers;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const int root_index = root_of(program, static_cast<int>(i));
    const Buffer& root = program.buffers[static_cast<size_t>(root_index)];
    const Dim offset =
        origin_in_root(program, static_cast<int>(i)) * Dim(static_cast<int64_t>(byte_size(root.type.dtype)));
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
        b.offset = b.offset + Dim(static_cast<int64_t>(constants.offset[static_cast<size_t>(root_index)]));
        break;
      case BufferKind::intermediate:
        b.offset = b.offset + root.arena_offset;
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
    tensors.push_back({buffer.name, buffer.type, b});
  }
  return tensors;
}

struct Owned {
  std::vector<uint8_t> code;
  std::shared_ptr<std::vector<uint8_t>> constants;
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
                  d.shared_bytes, d.spill_bytes, d.launch_shared, d.launch_shared_most};
  out.schedule = launch.schedule.text();
  const LaunchCost cost = cost_of(program, launch.region);
  out.flops = cost.flops;
  out.bytes_read = cost.read;
  out.bytes_written = cost.written;
  return out;
}

ArtifactLaunch host_launch(const Program& program, const Launch& launch, const ArtifactOptions& options) {
  ArtifactLaunch out;
  out.name = launch.name;
  out.symbol = "interpreter";
  out.pattern = launch.pattern;
  out.sources = launch.sources;
  out.buffers = launch.buffers;
  out.schedule = "reference";
  out.host = reference_launch(program, launch, options.reference_graph);
  return out;
}

}  // namespace

Artifact build_artifact(const Program& program, const TargetInfo& target, const ArtifactOptions& options) {
  const Kernels kernels = make_kernels(program, target, options);
  const PackedConstants constants = pack_constants(program, options.progress);
  auto owned = std::make_shared<Owned>();
  owned->constants = constants.bytes;
  const std::vector<size_t> entries = lay_out_code(kernels, owned->code);

  Artifact a;
  a.target = target.name;
  a.cpu_features = target.features;
  a.model_hash = options.model_hash;
  a.plan_json = options.plan_json;
  a.symbols = program.symbols;
  a.inputs = artifact_tensors(program, program.inputs);
  a.outputs = artifact_tensors(program, program.outputs);
  a.buffers = artifact_buffers(program, constants);
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const size_t kernel = kernels.of_launch[i];
    if (kernel == kNoKernel) {
      if (target.is_cuda())
        throw fail(E::uncompilable, "'{}' would run in the interpreter, which {} cannot call", program.launches[i].name,
                   target.name)
            .hint("--allow-reference is for cpu targets");
      a.launches.push_back(host_launch(program, program.launches[i], options));
      continue;
    }
    a.launches.push_back(artifact_launch(program, program.launches[i], kernels.kernels[kernel].code, entries[kernel]));
  }
  a.arena_bytes = program.arena_bytes;
  a.intermediate_bytes = program.intermediate_bytes;
  a.notes = program.notes;
  for (const Buffer& b : program.buffers) a.layouts.emplace_back(b.name, b.layout.text());
  a.code = owned->code;
  a.constants = *owned->constants;
  a.owner = owned;
  if (options.kernel_times) *options.kernel_times = kernel_times(program, kernels);
  if (!options.emit_dir.empty()) {
    std::vector<KernelCode> codes;
    for (const CachedKernel& kernel : kernels.kernels) codes.push_back(kernel.code);
    emit_kernel_files(program, kernels.of_launch, codes, options.emit_dir);
  }
  return a;
}

}  // namespace opfuse
