// Invariants of a program: indices exist, types of buffers and region parameters agree, views fit what
// they are cut from, everything read was written before, live buffers do not share memory.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "program/body.hpp"
#include "program/layout_facts.hpp"
#include "program/levels.hpp"
#include "program/lifetimes.hpp"

namespace opfuse {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), levels_(program) {}

  std::vector<std::string> problems() {
    for (size_t i = 0; i < program_.buffers.size(); ++i) check_buffer(i);
    if (!found_.empty()) return found_;
    roots_ = roots_of(program_);
    std::vector<char> written(program_.buffers.size(), 0);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const BufferKind kind = program_.buffers[i].kind;
      written[i] = kind == BufferKind::input || kind == BufferKind::constant;
    }
    for (const Launch& launch : program_.launches) {
      check_launch(launch, written);
      found_sizes_.add(launch);
      check_levels(launch);
    }
    for (int output : program_.outputs) require(written[root(output)], "output buffer {} is never written", output);
    check_bodies();
    check_memory();
    return found_;
  }

 private:
  const Program& program_;
  std::vector<std::string> found_;
  std::vector<int> roots_;
  Levels levels_, found_sizes_;  ///< of the whole program, of the launches so far

  size_t root(int buffer) const { return static_cast<size_t>(roots_[static_cast<size_t>(buffer)]); }

  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
    if (!ok) found_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  bool exists(int buffer) const { return buffer >= 0 && buffer < static_cast<int>(program_.buffers.size()); }

  void check_buffer(size_t i) {
    const Buffer& buffer = program_.buffers[i];
    require(buffer.layout.order.size() == buffer.type.shape.rank(), "buffer {} has layout {} for {}", i,
            buffer.layout.text(), buffer.type.text());
    if (buffer.view_of < 0) return;
    require(exists(buffer.view_of) && buffer.view_of != static_cast<int>(i), "buffer {} is a view of {}", i,
            buffer.view_of);
    if (!exists(buffer.view_of)) return;
    const Buffer& parent = program_.buffers[static_cast<size_t>(buffer.view_of)];
    require(parent.type.dtype == buffer.type.dtype, "buffer {} is a view of another element type", i);
    if (buffer.view_offset.empty()) {
      require(stores_row_major(parent.layout, parent.type.shape) && stores_row_major(buffer.layout, buffer.type.shape),
              "buffer {} reshapes buffer {}, which is not stored in order", i, buffer.view_of);
      require(parent.view_of < 0 || parent.view_offset.empty(), "buffer {} reshapes a box", i);
      return;
    }
    const bool box = parent.layout == buffer.layout && buffer.view_offset.size() == parent.type.shape.rank();
    require(box, "buffer {} is a box of buffer {} with another layout", i, buffer.view_of);
    if (!box) return;
    require(box_fits_blocks(buffer.layout, parent.type.shape, buffer.view_offset, buffer.type.shape),
            "buffer {} cuts blocks of buffer {}", i, buffer.view_of);
    for (size_t d = 0; d < buffer.view_offset.size(); ++d) {
      const Dim end = buffer.view_offset[d] + buffer.type.shape[d];
      if (end.is_constant() && parent.type.shape[d].is_constant())
        require(end.value() <= parent.type.shape[d].value(), "buffer {} leaves buffer {}", i, buffer.view_of);
    }
  }

  void check_launch(const Launch& launch, std::vector<char>& written) {
    if (launch.reference) {
      for (int buffer : launch.buffers)
        if (buffer >= 0) written[root(buffer)] = 1;
      return;
    }
    require(launch.buffers.size() == launch.region.params.size(), "launch {} has {} buffers for {} parameters",
            launch.name, launch.buffers.size(), launch.region.params.size());
    if (launch.buffers.size() != launch.region.params.size()) return;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      require(exists(launch.buffers[i]), "launch {} uses buffer {}", launch.name, launch.buffers[i]);
      if (!exists(launch.buffers[i])) continue;
      const Param& param = launch.region.params[i];
      const TensorType& type = program_.buffers[static_cast<size_t>(launch.buffers[i])].type;
      require(param.type == type, "launch {}: parameter {} is {}, its buffer {}", launch.name, i, param.type.text(),
              type.text());
      const bool by_itself = i < launch.steps.size() && launch.steps[i].before;
      if (param.role != ParamRole::output && !by_itself)
        require(written[root(launch.buffers[i])], "launch {} reads buffer {} before it is written", launch.name,
                launch.buffers[i]);
    }
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      if (launch.region.params[i].role == ParamRole::output) written[root(launch.buffers[i])] = 1;
  }

  /// Memory is there, and sizes are known, when a launch needs them.
  void check_levels(const Launch& launch) {
    if (levels_.count() == 0) return;
    for (const int buffer : launch.buffers) {
      if (!exists(buffer)) continue;
      const Buffer& own = program_.buffers[static_cast<size_t>(buffer)];
      const int level = std::max({levels_.of(program_.buffers[root(buffer)]), levels_.of(own.type.shape.dims),
                                  levels_.of(origin_in_root(program_, buffer))});
      require(level <= found_sizes_.count(), "launch {} uses buffer {}, whose size is found later", launch.name,
              buffer);
    }
  }

  /// Rows of the first axis that lie behind the first one of a box, in what it is cut from.
  Dim rows_from(int box) const {
    const Buffer* buffer = &program_.buffers[static_cast<size_t>(box)];
    Dim offset = 0;
    for (; buffer->view_of >= 0 && !buffer->view_offset.empty();
         buffer = &program_.buffers[static_cast<size_t>(buffer->view_of)])
      offset = offset + buffer->view_offset[0];
    return buffer->type.shape[0] - offset;
  }

  void check_bodies() {
    int end = 0;
    for (const Body& body : program_.bodies) {
      const bool within = body.first >= end && body.launches > 0 &&
                          body.first + body.launches <= static_cast<int>(program_.launches.size());
      require(within, "a body has launches {} to {}", body.first, body.first + body.launches - 1);
      if (!within) return;
      end = body.first + body.launches;
    }
    for (size_t l = 0; l < program_.launches.size(); ++l) {
      const Launch& launch = program_.launches[l];
      const Body* body = body_of(program_, l);
      const bool fits = launch.steps.size() == (body ? launch.buffers.size() : 0);
      require(fits, "launch {} says of {} operands how they follow its body", launch.name, launch.steps.size());
      if (!fits || !body || body->kind != BodyKind::parts || !always_runs(*body)) continue;
      for (size_t i = 0; i < launch.buffers.size(); ++i)
        if (launch.steps[i].moves) check_part(launch, launch.buffers[i], *body);
    }
  }

  void check_part(const Launch& launch, int index, const Body& body) {
    const Shape& shape = program_.buffers[static_cast<size_t>(index)].type.shape;
    require(shape.rank() > 0, "launch {} moves along buffer {}, which has no axes", launch.name, index);
    if (shape.rank() == 0) return;
    const Dim needed = shape[0] * body.times, there = rows_from(index);
    if (needed.is_constant() && there.is_constant())
      require(needed.value() <= there.value(), "launch {} moves over {} rows of buffer {}, which has {}", launch.name,
              needed.value(), index, there.value());
  }

  /// Offsets with constant values: buffers alive at the same time must not overlap.
  void check_memory() {
    if (program_.arena_bytes == Dim(0)) return;
    const std::vector<Lifetime> lives = lifetimes(program_);
    struct Span {
      size_t buffer;
      int64_t from, to;
    };
    std::vector<Span> spans;  // of the first arena; in others few offsets are constant
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (buffer.kind != BufferKind::intermediate || buffer.view_of >= 0 || lives[i].first < 0) continue;
      const Dim bytes = bytes_of(buffer);
      if (!bytes.is_constant() || levels_.of(bytes) > 0 || !buffer.arena_offset.is_constant()) continue;
      spans.push_back({i, buffer.arena_offset.value(), buffer.arena_offset.value() + bytes.value()});
      require(buffer.arena_offset.value() % 64 == 0, "buffer {} is not aligned", i);
    }
    for (size_t a = 0; a < spans.size(); ++a)
      for (size_t b = a + 1; b < spans.size(); ++b) {
        const Lifetime &la = lives[spans[a].buffer], &lb = lives[spans[b].buffer];
        const bool together = la.first <= lb.last && lb.first <= la.last;
        const bool shared = spans[a].from < spans[b].to && spans[b].from < spans[a].to;
        require(!together || !shared, "buffers {} and {} share memory while both are alive", spans[a].buffer,
                spans[b].buffer);
      }
  }
};

}  // namespace

void verify(const Program& program) {
  const std::vector<std::string> problems = Verifier(program).problems();
  if (problems.empty()) return;
  std::string text;
  for (const std::string& problem : problems) text += "\n  " + problem;
  throw fail(E::internal, "a program is not well formed:{}", text);
}

}  // namespace opfuse
