// The program's text: buffers with layouts and places, then launches with their regions.
#include "program/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace opfuse {

namespace {

std::string_view name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::constant:
      return "constant";
    case BufferKind::intermediate:
      return "intermediate";
  }
  return "?";
}

std::string text_of(const Buffer& buffer) {
  std::string text = fmt::format("{} \"{}\" {} layout {}", name_of(buffer.kind), buffer.name, buffer.type.text(),
                                 buffer.layout.text());
  if (buffer.view_of >= 0) {
    text += fmt::format(" view of {}", buffer.view_of);
    if (!buffer.view_offset.empty()) text += " at " + Shape(buffer.view_offset).text();
  } else if (buffer.kind == BufferKind::intermediate) {
    text += " arena " + buffer.arena_offset.text();
  }
  return text;
}

std::string indented(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += fmt::format("  {}\n", text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string print(const Program& program) {
  std::string out = "program\n";
  if (!program.symbols.empty()) out += fmt::format("symbols {}\n", fmt::join(program.symbols, ", "));
  for (size_t i = 0; i < program.buffers.size(); ++i)
    out += fmt::format("buffer {} {}\n", i, text_of(program.buffers[i]));
  for (const Launch& launch : program.launches) {
    out += fmt::format("launch \"{}\" buffers [{}]", launch.name, fmt::join(launch.buffers, ", "));
    if (!launch.pattern.empty()) out += " pattern " + launch.pattern;
    if (!launch.schedule.knobs.empty()) out += fmt::format(" schedule \"{}\"", launch.schedule.text());
    if (!launch.sources.empty()) out += fmt::format(" from {}", fmt::join(launch.sources, ", "));
    out += launch.reference ? " reference\n" : "\n" + indented(print(launch.region));
  }
  out += fmt::format("inputs [{}] outputs [{}]\n", fmt::join(program.inputs, ", "), fmt::join(program.outputs, ", "));
  for (const Body& body : program.bodies)
    out += fmt::format("body: launches {} to {}, once for each {} of {}{}{}\n", body.first,
                       body.first + body.launches - 1, body.of, body.times.text(), body.backwards ? ", backwards" : "",
                       body.symbol.empty() ? "" : fmt::format(", from {} on", body.from));
  out += fmt::format("arena {} bytes, intermediates {} bytes\n", program.arena_bytes.text(),
                     program.intermediate_bytes.text());
  for (const std::string& note : program.notes) out += fmt::format("note {}\n", note);
  return out;
}

}  // namespace opfuse
