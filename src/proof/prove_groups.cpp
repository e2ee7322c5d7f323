// real    a launch on what the launches before it stored; the graph's operators, in double, say from these numbers what
//         it must store, its region how far a correct kernel may be off. Lowering, folded weights and functions show.
// exact   a launch on drawn operands, weights too; its region in double says what it must store. Sums are exact in any
//         order, so one wrong term, tap, lane or bit shows.
#include "proof/prove_groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "interp/random_inputs.hpp"
#include "ir/for_parts.hpp"
#include "ir/value_name.hpp"
#include "program/body.hpp"
#include "program/routine_launches.hpp"
#include "proof/bias_codes.hpp"
#include "proof/exact_inputs.hpp"
#include "proof/requantised.hpp"

namespace opfuse {
namespace {

bool is_input(const Launch& launch, size_t param) { return launch.region.params[param].role == ParamRole::input; }

double root_mean_square(const Tensor& t) {
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0, n = t.elements(); i < n; ++i)
    if (const double v = t.real(i); std::isfinite(v)) sum += v * v, ++finite;
  return finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite));
}

void add_constants(const Graph& graph, std::set<const void*>& to) {
  for (const Value* c : graph.constants())
    if (c->constant->elements() > 0) to.insert(c->constant->data());
  for (const Node* node : graph.nodes())
    if (node->body) add_constants(*node->body, to);
}

/// Its launches are proven for each part.
bool has_images(const Body& body) { return body.kind == BodyKind::parts && always_runs(body); }

/// The steps that a launch runs for; null: none.
const Body* steps_of(const Program& program, size_t launch) {
  const Body* body = body_of(program, launch);
  return body && body->kind == BodyKind::steps ? body : nullptr;
}

}  // namespace

std::string GroupProver::Image::name(const std::string& value) const {
  return number < 0 ? value : part_name(value, body->of, number);
}

GroupProver::GroupProver(const Graph& graph, const Program& program, const Executable& executable,
                         const SymbolValues& symbols, const CompareOptions& options)
    : graph_(graph),
      options_(options),
      runner_(program, executable, symbols, options.variant),
      oracle_(graph, symbols),
      bias_codes_(bias_codes(graph)) {
  add_constants(graph, given_);
}

void GroupProver::each_launch(const std::function<void(size_t, const Image&)>& body) const {
  const Program& program = runner_.program();
  size_t done = 0;
  for (const Body& loop : program.bodies) {
    if (!has_images(loop)) continue;
    const auto first = static_cast<size_t>(loop.first), end = first + static_cast<size_t>(loop.launches);
    for (; done < first; ++done) body(done, {});
    for (int64_t image = 0, images = loop.times.value(); image < images; ++image)
      for (size_t i = first; i < end; ++i) body(i, {image, &loop});
    done = end;
  }
  for (; done < program.launches.size(); ++done) body(done, {});
}

const Tensor* GroupProver::value(const std::string& name) {
  if (const auto at = values_.find(name); at != values_.end()) return &at->second;
  if (!oracle_.has(name)) return nullptr;
  Tensor computed = oracle_.value(name, values_);
  if (const DType declared = oracle_.dtype_of(name); is_float(declared)) computed = computed.cast(declared);
  return &(values_[name] = std::move(computed));
}

/// Values that only the program has (ranks of a TopK, a part of a concatenation) are known by their buffer.
std::string GroupProver::key(int buffer, const Image& image) const {
  const std::string name = image.name(runner_.program().buffers[static_cast<size_t>(buffer)].name);
  return oracle_.has(name) ? name : fmt::format("buffer {} of image {}", buffer, image.number);
}

const Tensor& GroupProver::operand(int buffer, const Image& image) {
  const Buffer& stored = runner_.program().buffers[static_cast<size_t>(buffer)];
  const std::string name = key(buffer, image);
  const Tensor* at = value(name);
  OPFUSE_CHECK(at, "buffer '{}' has no value in the graph", stored.name);
  if (at->dtype() != stored.type.dtype) return values_[name] = at->cast(stored.type.dtype);
  return *at;
}

/// An input that the model returns as it is has a copy of its name.
bool GroupProver::is_given(const std::string& name) const {
  const std::vector<Value*>& inputs = graph_.inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const Value* v) { return value_name(*v) == name; });
}

LaunchRunner::Operand GroupProver::operands(const Image& image) {
  return [this, image](const Launch& launch, size_t param) -> const Tensor* {
    const Buffer& buffer = runner_.program().buffers[static_cast<size_t>(launch.buffers[param])];
    return buffer.kind == BufferKind::constant ? nullptr : &operand(launch.buffers[param], image);
  };
}

std::set<std::string> GroupProver::leaves_of(const Launches& together, const Image& image) const {
  std::set<std::string> leaves;
  for (const size_t l : together) {
    const Launch& launch = runner_.program().launches[l];
    for (size_t p = 0; p < launch.buffers.size(); ++p) {
      if (!is_input(launch, p)) continue;
      const std::string name = key(launch.buffers[p], image);
      const auto inner = inner_.find(name);
      if (inner != inner_.end())
        leaves.insert(inner->second.leaves.begin(), inner->second.leaves.end());
      else
        leaves.insert(name);
    }
  }
  return leaves;
}

void GroupProver::prove_real(const Launches& together, const Image& image, GroupComparison& result) {
  const LaunchRun run = runner_.run(together, operands(image));
  for (const StoredResult& stored : run.results)
    if (const std::string name = key(stored.buffer, image); !is_given(name)) values_.erase(name);
  const std::set<std::string> leaves = leaves_of(together, image);
  std::vector<Tensor> want;
  for (const StoredResult& stored : run.results) {
    const std::string name = key(stored.buffer, image);
    want.push_back(oracle_.has(name) ? oracle_.results({name}, values_, leaves)[0] : Tensor());
    result.padding_zero = result.padding_zero && stored.padding_zero;
    if (result.output.empty()) result.output = stored.name;
    if (want.back().empty()) continue;
    const Difference d = difference(stored.tensor, want.back());
    if (d.relative() > result.difference.relative()) result.difference = d, result.output = stored.name;
    if (is_float(stored.tensor.dtype())) noise_[name] = distance_of(stored.tensor, want.back());
  }
  for (const StoredResult& stored : run.results) values_[key(stored.buffer, image)] = stored.tensor;
  const Region& region = runner_.program().launches[together.front()].region;
  if (together.size() == 1 && is_requantised(region)) {
    std::vector<Tensor> results;
    for (const StoredResult& stored : run.results) results.push_back(stored.tensor);
    const int64_t off = off_the_law(region, run.operands.front(), results, runner_.symbols());
    result.off_law = result.off_law.value_or(0) + off;
  }
  const std::vector<BoundedRun> bounded = bound_run(together, run, image, Numbers::of_graph);
  result.real.merge(judge_run(together, run, image, bounded, want));
  for (size_t r = 0; r < run.results.size(); ++r)
    if (want[r].empty())
      inner_[key(run.results[r].buffer, image)] = {merged(parts_of(together, bounded, run.results[r].buffer)), leaves};
}

void GroupProver::prove_exact(const Launches& together, const Image& image, GroupComparison& result) {
  std::map<int, Tensor> drawn;  // by buffer: two reads of one value have the same numbers
  for (const size_t l : together) {
    const Launch& launch = runner_.program().launches[l];
    ExactInputs exact(launch.region, options_.seed + l);
    for (const Transformed& t : transformed(launch))
      if (t.keeps_integers()) exact.use_multiples(t.param, 4);
    for (size_t p = 0; p < launch.buffers.size(); ++p) {
      if (launch.region.params[p].role == ParamRole::output) continue;
      const Buffer& buffer = runner_.program().buffers[static_cast<size_t>(launch.buffers[p])];
      const bool constant = buffer.kind == BufferKind::constant;
      if (constant && buffer.view_of >= 0) continue;
      drawn.try_emplace(launch.buffers[p],
                        exact.draw(p, constant ? buffer.constant : operand(launch.buffers[p], image)));
    }
  }
  const LaunchRun run = runner_.run(together, [&](const Launch& launch, size_t param) -> const Tensor* {
    const auto at = drawn.find(launch.buffers[param]);
    return at == drawn.end() ? nullptr : &at->second;
  });
  for (const StoredResult& stored : run.results) result.padding_zero = result.padding_zero && stored.padding_zero;
  result.exact.merge(judge_run(together, run, image, bound_run(together, run, image, Numbers::of_region), {}));
}

GroupComparison GroupProver::prove(size_t index, const Image& image) {
  const Launch& launch = runner_.program().launches[index];
  GroupComparison result;
  result.name = launch.name, result.pattern = launch.pattern, result.sources = launch.sources;
  result.ok = true;
  if (launch.reference && !launch.pattern.empty()) prove_placed(index, result);
  if (is_routine(launch)) prove_routine(index, result);
  if (launch.reference) return result;  // the interpreter itself
  if (const Body* loop = steps_of(runner_.program(), index)) {
    if (!loops_.contains(index)) prove_steps(*loop);
    return loops_.at(index);
  }
  const Launches together = runner_.writers_with(index);
  if (together.back() != index) return result;  // judged with the last part
  try {
    prove_real(together, image, result);
    if (image.number <= 0 && options_.exact_proof) prove_exact(together, image, result);
  } catch (const Error& error) {
    if (error.diagnostic().name != "internal") throw;
    result.problem = error.diagnostic().message;
  }
  conclude(result);
  return result;
}

void GroupProver::conclude(GroupComparison& result) const {
  result.ties = result.real.ties;
  const bool drawn = result.exact.elements > 0 && result.exact.claimed(options_.most_unclaimed);
  result.mostly_unclaimed = !result.real.claimed(options_.most_unclaimed) && !drawn;
  const bool close = options_.group_tolerance ? result.difference.relative() <= *options_.group_tolerance
                                              : result.real.ok() && !result.mostly_unclaimed;
  const bool lawful = result.off_law.value_or(0) == 0;
  result.ok = close && lawful && result.exact.ok() && result.padding_zero && result.problem.empty();
}

static void keep_worst(GroupComparison& worst, GroupComparison other) {
  if (other.difference.relative() > worst.difference.relative())
    worst.difference = other.difference, worst.output = other.output;
  worst.real.merge(other.real);
  if (worst.problem.empty()) worst.problem = std::move(other.problem);
  worst.ok = worst.ok && other.ok, worst.padding_zero = worst.padding_zero && other.padding_zero;
  worst.ties += other.ties;
  if (other.off_law) worst.off_law = worst.off_law.value_or(0) + *other.off_law;
}

std::vector<GroupComparison> GroupProver::run(const std::vector<Tensor>& inputs) {
  values_.clear();
  inner_.clear();
  loops_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) values_[value_name(*graph_.inputs()[i])] = inputs[i];
  const Program& program = runner_.program();
  std::vector<GroupComparison> results(program.launches.size());
  size_t all = program.launches.size(), done = 0;
  for (const Body& body : program.bodies)
    if (has_images(body)) all += static_cast<size_t>(body.launches * (body.times.value() - 1));
  each_launch([&](size_t index, const Image& image) {
    if (options_.progress) options_.progress("compare groups", done++, all);
    GroupComparison proven = prove(index, image);
    if (image.number <= 0)
      results[index] = std::move(proven);
    else
      keep_worst(results[index], std::move(proven));
  });
  return results;
}

std::vector<Tensor> GroupProver::run_with_noise(const std::vector<Tensor>& inputs, uint64_t seed) {
  const GroupValues::Known kept = std::move(values_);
  values_.clear();
  const auto add_noise = [&](const std::string& name, const Tensor& t) {
    if (!is_float(t.dtype())) return t;
    Random random(seed, name);
    Tensor moved = t.clone();
    const auto found = noise_.find(name);
    const double deviation = found == noise_.end() ? 0 : found->second * root_mean_square(t);
    for (int64_t i = 0, n = t.elements(); i < n; ++i) {
      const double v = t.real(i), unit = unit_of(t.dtype()) * std::fabs(v);
      if (std::isfinite(v)) moved.set_real(i, v + std::max(unit, deviation * (v != 0)) * random.normal());
    }
    return moved;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = value_name(*graph_.inputs()[i]);
    values_[name] = add_noise(name, inputs[i]);
  }
  each_launch([&](size_t index, const Image& image) {
    const Launch& launch = runner_.program().launches[index];
    if (launch.reference && !launch.pattern.empty())
      for (const int buffer : launch.buffers)  // of a plug-in: results that were judged have a deviation
        if (const std::string name = buffer < 0 ? "" : key(buffer, image);
            noise_.contains(name) && !values_.contains(name))
          if (const Tensor* exact = value(name)) values_[name] = add_noise(name, *exact);
    if (is_routine(launch)) keep_exact_sizes(launch, run_routine_on_values(launch), kept);
    if (launch.reference || steps_of(runner_.program(), index)) return;  // of steps the graph's own values are taken
    const Launches together = runner_.writers_with(index);
    if (together.back() != index) return;
    for (const StoredResult& stored : runner_.run(together, operands(image)).results)
      values_[key(stored.buffer, image)] = add_noise(key(stored.buffer, image), stored.tensor);
  });
  std::vector<Tensor> outputs;
  for (const Value* output : graph_.outputs()) outputs.push_back(*value(value_name(*output)));
  values_ = kept;
  return outputs;
}

}  // namespace opfuse
