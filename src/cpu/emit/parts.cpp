// part = (batch piece * parts_o + channel piece) * parts_p + row piece, or, with rows_first,
//        (batch piece * parts_p + row piece) * parts_o + channel piece
#include "cpu/emit/parts.hpp"

#include "cpu/parts_schedule.hpp"

namespace opfuse::cpu {

PartRange cut_range(Kernel& k, const Dim& count, Value* index, const Dim& pieces) {
  if (pieces == Dim(1)) return {k.i64(0), k.dim(count)};
  Value* next = k.add(index, k.i64(1));
  return {k.div(k.mul(k.dim(count), index), k.dim(pieces)), k.div(k.mul(k.dim(count), next), k.dim(pieces))};
}

void emit_tiled_parts(Kernel& k, const Env& start, const std::vector<int>& batch_axes, const Dim& blocks,
                      const Dim& rows, const PartBody& body) {
  const auto s = typed<Parts>(k.spec.schedule);
  const Dim po = int64_t{s.parts_o}, pr = int64_t{s.parts_p};
  Dim batch = 1;
  for (int axis : batch_axes) batch = batch * start.extents[static_cast<size_t>(axis)];
  const Dim pb = max(Dim(1), min(batch, Dim(int64_t{s.parts_batch})));
  k.parts = pb * po * pr;
  const bool rows_first = s.rows_first != 0;
  const Dim inner = rows_first ? po : pr, outer = rows_first ? pr : po;
  Value* rest = k.div(k.part, k.dim(inner));
  Value* near = k.rem(k.part, k.dim(inner));
  Value* far = k.rem(rest, k.dim(outer));
  const PartRange row = cut_range(k, rows, rows_first ? far : near, pr);
  const PartRange block = cut_range(k, blocks, rows_first ? near : far, po);
  const PartRange piece = cut_range(k, batch, k.div(rest, k.dim(outer)), pb);
  k.loop(piece.begin, piece.end, 1, [&](Value* flat) {
    Env env = start;
    for (size_t a = batch_axes.size(); a-- > 0;) {
      Value* extent = k.dim(start.extents[static_cast<size_t>(batch_axes[a])]);
      env.axes[static_cast<size_t>(batch_axes[a])] = {a == 0 ? flat : k.rem(flat, extent), false, 1};
      if (a) flat = k.div(flat, extent);
    }
    body(env, block, row);
  });
}

}  // namespace opfuse::cpu
