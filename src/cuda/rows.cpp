// One team of threads per row:
//
//   row = team number                         the domain axes that the reductions depend on
//   for each reduction:                       threads of the team stride over the reduce axes,
//     partial results are combined            by warp shuffles, then through shared memory, in a fixed order
//   for inner axes: outputs                   threads of the team stride over what only the outputs depend on
//
// A team of one thread makes maps and windows, a warp or a block makes rows. Where elements lie together, a thread
// takes several neighbours at once, 16 bytes where it can. A row that fits stays in registers, a longer one in shared
// memory: it is read once. A thread only takes elements that it has put there itself, so that needs no barrier. Rows of
// open length are held when they turn out to fit.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "cuda/emitters.hpp"
#include "cuda/row_reads.hpp"
#include "cuda/schedules.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

class Rows {
 public:
  explicit Rows(Kernel& k, const std::vector<ParamLayout>& layouts)
      : k_(k),
        s_(k),
        axes_(row_axes(s_.stage, layouts)),
        reads_(row_reads(s_.stage, k.region, axes_)),
        team_(static_cast<int>(typed<RowsSchedule>(k.spec.schedule).team)),
        vector_(static_cast<int>(typed<RowsSchedule>(k.spec.schedule).vector)),
        per_thread_(static_cast<int>(typed<RowsSchedule>(k.spec.schedule).per_thread)),
        held_(typed<RowsSchedule>(k.spec.schedule).held),
        across_(typed<RowsSchedule>(k.spec.schedule).across > 0) {
    for (int i = 0; i < static_cast<int>(s_.stage.reduce.size()); ++i) reduce_.push_back(s_.domain() + i);
  }

  void emit() {
    k_.block = static_cast<int>(typed<RowsSchedule>(k_.spec.schedule).block);
    k_.constant("kBlock", k_.block);
    const bool whole_warps = across_ || team_ == 32 || (team_ == k_.block && team_ % 32 == 0);
    OPFUSE_CHECK(team_ == 1 || whole_warps, "a team of {} threads in a block of {}", team_, k_.block);
    if (vector_ > 1) k_.constant("kVector", vector_);
    if (vector_ > 1 && s_.stage.reductions.empty()) return emit_vectors();
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    begin_row(point.env);
    if (per_thread_ > 0) keep_row(point);
    if (held_ > 0) hold_row(point);
    for (const Reduction& r : s_.stage.reductions) point.results.push_back(reduce(r, point));
    store(point);
  }

 private:
  Kernel& k_;
  StageText s_;
  RowAxes axes_;
  RowReads reads_;
  int team_, vector_, per_thread_;
  int64_t held_;  ///< elements of a row, at most, that shared memory holds
  bool across_;   ///< a warp has neighbouring rows, each warp of the block another share of them
  std::vector<int> reduce_;
  std::map<int, std::string> kept_;  ///< reads whose row lies in registers or shared memory, by the array's name
  std::string fits_;                 ///< rows of open length: whether they are held
  std::string there_;                ///< of rows across: whether this one is; the last one stands in for it

  int last_reduced() const { return reduce_.empty() ? -1 : reduce_.back(); }  ///< none where they all have one element
  std::string lane() const { return team_ == 1 ? "0" : "lane"; }

  /// Rows side by side: 32 of them in a block. All threads stay, since they meet at barriers.
  void begin_rows_across(Env& env) {
    const Dim rows = s_.elements(axes_.rows);
    k_.grid = ceil_div(rows, Dim(32));
    k_.constant("kTeam", team_);
    k_.line("const int lane = (int)threadIdx.x / 32;  // neighbouring threads have neighbouring rows");
    const std::string here = fmt::format("({0})blockIdx.x * 32 + ({0})threadIdx.x % 32", k_.index_type());
    const auto count = rows.constant();
    if (count && *count % 32 == 0) return s_.decode(k_.declare_index("row", here), axes_.rows, env);
    const std::string all = k_.text_of(rows), at = k_.text_of(k_.declare_index("here", here));
    there_ = k_.declare("bool", "there", fmt::format("{} < {}", at, all));
    s_.decode(k_.declare_index("row", fmt::format("{} ? {} : {} - 1", there_, at, all)), axes_.rows, env);
  }

  void begin_row(Env& env) {
    if (across_) return begin_rows_across(env);
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

  /// Body for every position of `count` that this thread has, the first of `vector_` neighbours; where rows are kept in
  /// registers, positions are those of the registers.
  template <class Body>
  void over(const std::string& variable, const Dim& count, Body body) {
    const std::string type = k_.index_type(), wide = vector_ > 1 ? " * kVector" : "";
    if (per_thread_ > 0) {
      k_.line("#pragma unroll");
      k_.open(fmt::format("for (int part = 0; part < kPerThread{}; ++part)", vector_ > 1 ? " / kVector" : ""));
      const std::string thread = lane() + " + part * kTeam";
      const Dim at = k_.declare_index(variable, vector_ > 1 ? fmt::format("({}){}", thread, wide) : thread);
      const bool ragged = count.value() % (int64_t{per_thread_} * team_) != 0;
      if (ragged) k_.open(fmt::format("if ({} < {})", k_.text_of(at), k_.text_of(count)));
      body(at);
      if (ragged) k_.close();
    } else {
      const std::string name = k_.fresh(variable);
      const std::string step = team_ == 1 ? "++" + name : fmt::format("{} += kTeam{}", name, wide);
      k_.open(fmt::format("for ({} {} = {}{}; {} < {}; {})", type, name, lane(), wide, name, k_.text_of(count), step));
      body(Kernel::local(name));
    }
    k_.close();
  }

  /// Body for the vector_ neighbours from `point` on along `axis`: j of them.
  template <class Body>
  void each(StageText::Point point, int axis, Body body) {
    if (vector_ == 1) return body(point);
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kVector; ++j)");
    Dim& at = point.env[static_cast<size_t>(axis)];
    at = at + Kernel::local("j");
    body(point);
    k_.close();
  }

  std::string in_register(const std::string& name) const {
    return name + (vector_ > 1 ? "[part * kVector + j]" : "[part]");
  }

  /// Reads of the reductions that the whole row needs: loaded once into registers.
  void keep_row(const StageText::Point& point) {
    k_.constant("kPerThread", per_thread_);
    for (int r : reads_.kept) {
      kept_[r] = k_.fresh("kept");
      k_.line(fmt::format("{} {}[kPerThread];", value_type(dtype_of(r)), kept_[r]));
    }
    if (kept_.empty()) return;
    over("k", s_.elements(reduce_), [&](const Dim& at) {
      StageText::Point inner = point;
      s_.decode(at, reduce_, inner.env);
      const std::map<int, std::string> loaded = loaded_vectors(inner, {reads_.kept.begin(), reads_.kept.end()});
      each(inner, last_reduced(), [&](const StageText::Point& element) {
        for (const auto& [r, name] : kept_) {
          const auto vector = loaded.find(r);
          k_.line(fmt::format("{} = {};", in_register(name),
                              vector == loaded.end() ? load_inside(r, element) : vector->second));
        }
      });
    });
  }

  /// What several passes read: copied once into the shared memory that the launch gives. Wide elements come first, so
  /// that every array is aligned.
  void hold_row(const StageText::Point& point) {
    const Dim count = s_.elements(reduce_);
    std::vector<int> reads = reads_.again;
    const auto bytes = [&](int r) { return static_cast<int64_t>(byte_size(dtype_of(r))); };
    std::stable_sort(reads.begin(), reads.end(), [&](int x, int y) { return bytes(x) > bytes(y); });
    k_.use("launch_shared");
    Dim offset = 0;
    for (int r : reads) {
      kept_[r] = k_.fresh("held");
      const std::string type = memory_type(dtype_of(r)) + "*";
      const std::string from = offset == Dim(0) ? "" : " + " + k_.text_of(offset);
      k_.line(fmt::format("{} const {} = reinterpret_cast<{}>(launch_shared(){});", type, kept_[r], type, from));
      offset = offset + count * Dim(bytes(r));
    }
    k_.hold(offset, held_ * reads_.bytes);
    if (!count.is_constant()) {
      k_.constant("kHeld", held_);
      fits_ = k_.declare("bool", "fits", fmt::format("{} <= kHeld", k_.text_of(count)));
      k_.open(fmt::format("if ({})", fits_));
    }
    over("k", count, [&](const Dim& at) {
      StageText::Point inner = point;
      s_.decode(at, reduce_, inner.env);
      for (const auto& [r, name] : kept_) {
        const std::string to = k_.text_of(at), from = s_.element(r, inner), guard = guard_of(r, inner);
        k_.line(vector_ == 1
                    ? fmt::format("{}[{}] = {};", name, to, guard == "true" ? from : guard + " ? " + from + " : 0")
                    : copy_text(dtype_of(r), vector_, fmt::format("{} + {}", name, to), "&" + from));
      }
    });
    if (!fits_.empty()) k_.close();
  }

  /// When the element that `read` takes at `point` exists.
  std::string guard_of(int read, const StageText::Point& point) {
    if (!s_.guarded(read)) return "true";
    const Read& r = s_.stage.reads[static_cast<size_t>(read)];
    return s_.inside(s_.operand_of(r), r.map, point);
  }
  std::string load_inside(int read, const StageText::Point& point) {
    return s_.load(read, point, guard_of(read, point));
  }

  DType dtype_of(int read) const { return s_.operand_of(s_.stage.reads[static_cast<size_t>(read)]).dtype; }

  std::map<int, std::string> loaded_vectors(const StageText::Point& point, const std::set<int>& reads) {
    if (vector_ == 1) return {};
    return load_vectors(s_, point, last_reduced(), vector_, reads);
  }

  /// Texts of what was kept of the row, by read of `wanted`: element j from position `at` on.
  std::map<int, std::string> kept_elements(const Dim& at, const std::set<int>& wanted) {
    std::map<int, std::string> elements;
    for (const auto& [r, name] : kept_) {
      if (!wanted.count(r)) continue;
      if (per_thread_ > 0) {
        elements[r] = in_register(name);
        continue;
      }
      std::string element = fmt::format("{}[{}]", name, k_.text_of(at));
      if (vector_ > 1) {
        const std::string here = k_.fresh("here");
        k_.line(fmt::format("alignas(16) {} {}[kVector];", memory_type(dtype_of(r)), here));
        k_.line(copy_text(dtype_of(r), vector_, here, fmt::format("{} + {}", name, k_.text_of(at))));
        element = here + "[j]";
      }
      elements[r] = from_memory(k_, dtype_of(r), element);
    }
    return elements;
  }

  /// What `here`, standing at `point`, takes instead of loading: of open rows, only where they fit.
  std::string instead(const std::string& kept, int here, const StageText::Point& point) {
    return fits_.empty() ? kept : fmt::format("({} ? {} : {})", fits_, kept, load_inside(here, point));
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
        const std::set<int> used = reads_used(r.value);
        std::set<int> loaded = used;
        for (const auto& [read, name] : kept_) loaded.erase(read);
        inner.given = loaded_vectors(inner, loaded);
        for (const auto& [read, text] : kept_elements(at, used)) inner.given[read] = instead(text, read, inner);
        each(inner, last_reduced(), [&](const StageText::Point& element) {
          ExprText value = s_.at(element);
          accumulate(k_, r, acc, value);
        });
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
    if (across_) {
      const std::string partial = k_.shared(dtype == DType::boolean ? "unsigned char" : type, "partial", "[kTeam][32]");
      k_.line(fmt::format("{}[lane][threadIdx.x % 32] = {};", partial, acc));
      k_.line("__syncthreads();");
      k_.line(fmt::format("{} = {}[0][threadIdx.x % 32];", acc, partial));
      k_.line("#pragma unroll");
      k_.open("for (int other = 1; other < kTeam; ++other)");
      k_.line(
          fmt::format("{} = {};", acc, combine_text(k_, r.kind, dtype, acc, partial + "[other][threadIdx.x % 32]")));
      return k_.close();
    }
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

  void store(StageText::Point& point) {
    if (!there_.empty()) k_.open("if (" + there_ + ")");
    store_row(point);
    if (!there_.empty()) k_.close();
  }

  void store_row(StageText::Point& point) {
    const Dim count = s_.elements(axes_.inner);
    if (axes_.inner.empty() || (team_ == 1 && count == Dim(1))) {
      if (team_ > 1) k_.open("if (lane == 0)");
      s_.decode(0, axes_.inner, point.env);
      s_.store_outputs(point);
      if (team_ > 1) k_.close();
      return;
    }
    const bool again = !kept_.empty() && reads_.results_run_along;
    const int saved = per_thread_;
    if (!again) per_thread_ = 0;
    over("i", count, [&](const Dim& at) {
      StageText::Point inner = point;
      s_.decode(at, axes_.inner, inner.env);
      if (again) give_kept(at, inner);
      if (vector_ == 1) return s_.store_outputs(inner);
      std::set<int> known;
      for (const auto& [read, text] : inner.given) known.insert(read);
      emit_vector(s_, inner, axes_.inner.back(), vector_, known, [&](StageText::Point& element, const std::string&) {
        for (const auto& [read, text] : inner.given) element.given[read] = text;
      });
    });
    per_thread_ = saved;
  }

  /// Reads of results that take what was kept of the row.
  void give_kept(const Dim& at, StageText::Point& point) {
    std::map<int, int> takes;  // read of results -> kept read
    std::set<int> wanted;
    for (size_t r = 0; r < s_.stage.reads.size(); ++r)
      for (const auto& [kept, name] : kept_)
        if (same_element(s_.stage, axes_, static_cast<int>(r), kept)) takes[static_cast<int>(r)] = kept;
    for (const auto& [here, kept] : takes) wanted.insert(kept);
    const std::map<int, std::string> elements = kept_elements(at, wanted);
    for (const auto& [here, kept] : takes) point.given[here] = instead(elements.at(kept), here, point);
  }

  // ---- maps, several neighbouring elements per thread ------------------------------------------------------------

  void emit_vectors();
};

void Rows::emit_vectors() {
  const Dim elements = s_.elements(axes_.rows);
  k_.grid = ceil_div(elements, Dim(int64_t{k_.block} * vector_));
  const std::string type = k_.wide() ? "(long long)" : "(int)";
  const Dim first =
      k_.declare_index("element", fmt::format("({}blockIdx.x * kBlock + {}threadIdx.x) * kVector", type, type));
  const auto count = elements.constant();
  if (!count || *count % (int64_t{k_.block} * vector_) != 0)
    k_.line(fmt::format("if ({} >= {}) return;", k_.text_of(first), k_.text_of(elements)));
  StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
  s_.decode(first, axes_.rows, point.env);
  emit_vector(s_, point, axes_.rows.back(), vector_, {}, [](StageText::Point&, const std::string&) {});
}

}  // namespace

void emit_rows(Kernel& k) { Rows(k, k.layouts()).emit(); }

}  // namespace opfuse::cuda
