// A page with a section for each verb: what --help says of it, in man(7)'s macros. A backslash, and a dot or an
// apostrophe that begins a line, mean something there and are escaped; so are hyphens, which a reader may want to copy.
#include "manual.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "opfuse/opfuse.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

std::string roff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\n')
      out += ' ';
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string item(const std::string& name, const std::string& value, const std::string& meaning) {
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(name), value.empty() ? "" : " \\fI" + roff(value) + "\\fR",
                     roff(meaning));
}

std::string section_of(const FlagSet& flags) {
  std::string synopsis, items;
  for (const OptionRow& row : flags.rows()) {
    if (row.positional) synopsis += " " + roff(row.name);
    const std::string ending = row.default_value.empty() ? "" : fmt::format(" (default {})", row.default_value);
    items += item(row.positional ? row.name : row.all_names, row.positional ? "" : row.value, row.meaning + ending);
  }
  const auto known =
      std::find_if(verbs().begin(), verbs().end(), [&](const Verb& v) { return flags.verb() == v.name; });
  const std::string summary = known == verbs().end() ? "" : roff(known->summary);
  return fmt::format(".SS opfuse {}\\fI{}\\fR [OPTIONS]\n{}.\n{}", flags.verb(), synopsis, summary, items);
}

}  // namespace

std::string manual_page(const std::vector<FlagSet>& verbs,
                        const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string page = fmt::format(".TH OPFUSE 1 \"\" \"opfuse {}\" \"User Commands\"\n", version());
  page +=
      ".SH NAME\nopfuse \\- fuses the operators of ONNX models, says why, compiles and proves the result\n"
      ".SH SYNOPSIS\n.B opfuse\n\\fIVERB\\fR [\\fIARGUMENTS\\fR]\n.br\n.B opfuse\n\\fIVERB\\fR \\-\\-help\n"
      ".SH DESCRIPTION\nReports are written to standard output, everything else to standard error. A model is an\n"
      "ONNX file, a text graph (.fir), a built\\-in model (zoo:NAME), or what stands on standard input (\\-). An .opf\n"
      "contains machine code: load only what you would run.\n.SH VERBS\n";
  for (const FlagSet& verb : verbs) page += section_of(verb);
  page += ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : variables) page += item(name, "", meaning);
  page += ".SH EXIT STATUS\n";
  const std::pair<int, const char*> codes[] = {{kOk, "success"},
                                               {kCheckFailed, "a check failed: a proof, a comparison, a measurement"},
                                               {kUsage, "the command line"},
                                               {kBadModel, "the model"},
                                               {kRuntime, "running the model"},
                                               {kFiles, "reading or writing files"},
                                               {kInternal, "a fault of opfuse itself: please report it"},
                                               {kInterrupted, "interrupted"}};
  for (const auto& [code, meaning] : codes) page += item(std::to_string(code), "", meaning);
  return page;
}

}  // namespace opfuse::cli
