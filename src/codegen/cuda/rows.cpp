// One team of threads per row:
//
//   row = team number                         the domain axes that the reductions depend on
//   for each reduction:                       threads of the team stride over the reduce axes,
//     partial results are combined            by warp shuffles, then through shared memory, in a fixed order
//   for inner axes: outputs                   threads of the team stride over what only the outputs depend on
//
// A team of one thread makes maps and windows (several elements per thread where they lie together), a warp or a block
// makes rows. A row that fits stays in registers: it is read once.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "codegen/cuda/row_axes.hpp"
#include "codegen/cuda/skeletons.hpp"
#include "codegen/cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

class Rows {
 public:
  explicit Rows(Kernel& k, const std::vector<ParamLayout>& layouts)
      : k_(k),
        s_(k),
        axes_(row_axes(s_.stage, layouts)),
        team_(static_cast<int>(k.spec.schedule.get("team", 1))),
        vector_(static_cast<int>(k.spec.schedule.get("vector", 1))),
        per_thread_(static_cast<int>(k.spec.schedule.get("per_thread", 0))) {
    for (int i = 0; i < static_cast<int>(s_.stage.reduce.size()); ++i) reduce_.push_back(s_.domain() + i);
  }

  void emit() {
    k_.block = static_cast<int>(k_.spec.schedule.get("block", 256));
    k_.constant("kBlock", k_.block);
    const bool whole_warps = team_ == 32 || (team_ == k_.block && team_ % 32 == 0);
    OPFUSE_CHECK(team_ == 1 || whole_warps, "a team of {} threads in a block of {}", team_, k_.block);
    if (vector_ > 1) return emit_vectors();
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    begin_row(point.env);
    if (per_thread_ > 0) keep_row(point);
    for (const Reduction& r : s_.stage.reductions) point.results.push_back(reduce(r, point));
    store(point);
  }

 private:
  Kernel& k_;
  StageText s_;
  RowAxes axes_;
  int team_, vector_, per_thread_;
  std::vector<int> reduce_;
  std::map<int, std::string> kept_;  ///< reads whose row lies in registers, by the array's name

  std::string lane() const { return team_ == 1 ? "0" : "lane"; }

  void begin_row(Env& env) {
    const Dim rows = s_.elements(axes_.rows);
    const int64_t per_block = k_.block / team_;
    k_.grid = ceil_div(rows, Dim(per_block));
    const std::string type = k_.wide() ? "(long long)" : "(int)";
    std::string row;
    if (team_ == 1) {
      row = fmt::format("{}blockIdx.x * kBlock + {}threadIdx.x", type, type);
    } else {
      k_.constant("kTeam", team_);
      k_.line("const int lane = (int)threadIdx.x % kTeam;");
      row = team_ == k_.block ? type + "blockIdx.x"
                              : fmt::format("{}blockIdx.x * (kBlock / kTeam) + {}threadIdx.x / kTeam", type, type);
    }
    const Dim at = k_.declare_index(s_.stage.reductions.empty() ? "element" : "row", row);
    const auto count = rows.constant();
    if (!count || *count % per_block != 0)
      k_.line(fmt::format("if ({} >= {}) return;", k_.text_of(at), k_.text_of(rows)));
    s_.decode(at, axes_.rows, env);
  }

  /// Body for every position of `count` that this thread has; `kept`: positions are those of the registers.
  template <class Body>
  void over(const std::string& variable, const Dim& count, Body body) {
    const std::string type = k_.index_type();
    if (per_thread_ > 0) {
      k_.line("#pragma unroll");
      k_.open("for (int j = 0; j < kPerThread; ++j)");
      const Dim at = k_.declare_index(variable, fmt::format("{} + j * kTeam", lane()));
      const bool ragged = count.value() % (int64_t{per_thread_} * team_) != 0;
      if (ragged) k_.open(fmt::format("if ({} < {})", k_.text_of(at), k_.text_of(count)));
      body(at);
      if (ragged) k_.close();
    } else {
      const std::string name = k_.fresh(variable);
      const std::string step = team_ == 1 ? "++" + name : name + " += kTeam";
      k_.open(fmt::format("for ({} {} = {}; {} < {}; {})", type, name, lane(), name, k_.text_of(count), step));
      body(Kernel::local(name));
    }
    k_.close();
  }

  /// Reads of the reductions that the whole row needs: loaded once into registers.
  void keep_row(StageText::Point& point) {
    k_.constant("kPerThread", per_thread_);
    std::set<int> reads;
    for (const Reduction& r : s_.stage.reductions) reads.merge(reads_used(r.value));
    for (int r : reads) {
      if (!keepable(r)) continue;
      const Operand operand = s_.operand_of(s_.stage.reads[static_cast<size_t>(r)]);
      kept_[r] = k_.fresh("kept");
      k_.line(fmt::format("{} {}[kPerThread];", value_type(operand.dtype), kept_[r]));
    }
    if (kept_.empty()) return;
    over("k", s_.elements(reduce_), [&](const Dim& at) {
      StageText::Point inner = point;
      s_.decode(at, reduce_, inner.env);
      for (const auto& [r, name] : kept_) k_.line(fmt::format("{}[j] = {};", name, s_.load(r, inner)));
    });
  }

  bool keepable(int read) const {
    if (s_.guarded(read)) return false;
    bool along = false;
    for (const IndexExpr& d : s_.stage.reads[static_cast<size_t>(read)].map.dims) {
      if (d.dynamic) return false;
      for (const IndexTerm& t : d.terms) along |= t.axis >= s_.domain();
    }
    return along;
  }

  std::string reduce(const Reduction& r, const StageText::Point& point) {
    const std::string acc = k_.fresh(fmt::format("s{}", point.results.size()));
    const std::string type = value_type(r.value.dtype());
    k_.line(fmt::format("{} {} = {};", type, acc, identity_text(r)));
    if (per_thread_ == 0 && team_ == 1 && unrolled()) {
      StageText::Point inner = point;
      nest(0, inner, [&](const StageText::Point& p) {
        ExprText at = s_.at(p);
        accumulate(k_, r, acc, at);
      });
    } else {
      over("k", s_.elements(reduce_), [&](const Dim& at) {
        StageText::Point inner = point;
        s_.decode(at, reduce_, inner.env);
        for (const auto& [read, name] : kept_) inner.given[read] = name + "[j]";
        ExprText value = s_.at(inner);
        accumulate(k_, r, acc, value);
      });
    }
    if (team_ > 1) combine_team(r, acc);
    return acc;
  }

  /// Windows: one loop per reduce axis instead of divisions.
  bool unrolled() const { return s_.stage.reduce.size() > 1; }

  template <class Body>
  void nest(size_t index, StageText::Point& point, Body body) {
    if (index == reduce_.size()) return body(point);
    const int axis = reduce_[index];
    const Dim& extent = s_.extent(axis);
    if (extent == Dim(1)) {
      point.env[static_cast<size_t>(axis)] = 0;
      return nest(index + 1, point, body);
    }
    const std::string name = k_.fresh(fmt::format("a{}", axis));
    k_.open(fmt::format("for ({} {} = 0; {} < {}; ++{})", k_.index_type(), name, name, k_.text_of(extent), name));
    point.env[static_cast<size_t>(axis)] = Kernel::local(name);
    nest(index + 1, point, body);
    k_.close();
  }

  void combine_team(const Reduction& r, const std::string& acc) {
    const DType dtype = r.value.dtype();
    const std::string type = value_type(dtype);
    const bool direct = byte_size(dtype) >= 4 || is_float(dtype);
    k_.line("#pragma unroll");
    k_.open(fmt::format("for (int step = {}; step > 0; step /= 2)", std::min(team_, 32) / 2));
    k_.line(fmt::format("const {} other = {}__shfl_xor_sync(0xffffffffu, {}{}, step);", type,
                        direct ? "" : "(" + type + ")", direct ? "" : "(int)", acc));
    k_.line(fmt::format("{} = {};", acc, combine_text(k_, r.kind, dtype, acc, "other")));
    k_.close();
    if (team_ <= 32) return;
    k_.constant("kWarps", team_ / 32);
    const std::string partial = k_.shared(dtype == DType::boolean ? "unsigned char" : type, "partial", "[kWarps]");
    k_.line(fmt::format("if (lane % 32 == 0) {}[lane / 32] = {};", partial, acc));
    k_.line("__syncthreads();");
    k_.line(fmt::format("{} = {}[0];", acc, partial));
    k_.line("#pragma unroll");
    k_.open("for (int warp = 1; warp < kWarps; ++warp)");
    k_.line(fmt::format("{} = {};", acc, combine_text(k_, r.kind, dtype, acc, partial + "[warp]")));
    k_.close();
  }

  /// The read at the output's own position equals a kept one when the inner axes stand where the reduce axes stood.
  bool same_position(const IndexMap& here, const IndexMap& along) const {
    IndexMap moved = along;
    for (IndexExpr& d : moved.dims)
      for (IndexTerm& t : d.terms)
        if (t.axis >= s_.domain()) t.axis = axes_.inner[static_cast<size_t>(t.axis - s_.domain())];
    return moved == here;
  }

  bool inner_is_reduce() const {
    if (axes_.inner.size() != reduce_.size()) return false;
    for (size_t i = 0; i < reduce_.size(); ++i)
      if (!(s_.extent(axes_.inner[i]) == s_.extent(reduce_[i]))) return false;
    return true;
  }

  void store(StageText::Point& point) {
    const Dim count = s_.elements(axes_.inner);
    if (axes_.inner.empty() || (team_ == 1 && count == Dim(1))) {
      if (team_ > 1) k_.open("if (lane == 0)");
      s_.decode(0, axes_.inner, point.env);
      s_.store_outputs(point);
      if (team_ > 1) k_.close();
      return;
    }
    const bool again = per_thread_ > 0 && inner_is_reduce();
    const int saved = per_thread_;
    if (!again) per_thread_ = 0;
    over("i", count, [&](const Dim& at) {
      StageText::Point inner = point;
      s_.decode(at, axes_.inner, inner.env);
      if (again)
        for (size_t r = 0; r < s_.stage.reads.size(); ++r)
          for (const auto& [kept, name] : kept_) {
            const Read &here = s_.stage.reads[r], &along = s_.stage.reads[static_cast<size_t>(kept)];
            if (here.index == along.index && !s_.guarded(static_cast<int>(r)) && same_position(here.map, along.map))
              inner.given[static_cast<int>(r)] = name + "[j]";
          }
      s_.store_outputs(inner);
    });
    per_thread_ = saved;
  }

  // ---- maps, several neighbouring elements per thread ------------------------------------------------------------

  void emit_vectors();
};

void Rows::emit_vectors() {
  const Dim elements = s_.elements(axes_.rows);
  k_.constant("kVector", vector_);
  k_.grid = ceil_div(elements, Dim(int64_t{k_.block} * vector_));
  const std::string type = k_.wide() ? "(long long)" : "(int)";
  const Dim first =
      k_.declare_index("element", fmt::format("({}blockIdx.x * kBlock + {}threadIdx.x) * kVector", type, type));
  const auto count = elements.constant();
  if (!count || *count % (int64_t{k_.block} * vector_) != 0)
    k_.line(fmt::format("if ({} >= {}) return;", k_.text_of(first), k_.text_of(elements)));
  StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
  s_.decode(first, axes_.rows, point.env);
  emit_vector(s_, point, axes_.rows.back(), vector_, [](const std::string&) { return std::vector<std::string>{}; });
}

}  // namespace

void emit_rows(Kernel& k) { Rows(k, k.layouts()).emit(); }

}  // namespace opfuse::cuda
