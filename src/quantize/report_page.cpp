// The report as one HTML file: the numbers in tables, the SQNR of layers as bars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "quantize/report_json.hpp"

namespace opfuse::quantization {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHead =
    R"(<!doctype html><html lang="en"><meta charset="utf-8"><title>opfuse quantize</title><style>
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24}
table{border-collapse:collapse;width:100%;margin:.6rem 0 2rem}th,td{text-align:left;padding:.15rem .6rem;border-bottom:1px solid #e4e7ea}
td.n{text-align:right;font-variant-numeric:tabular-nums}th{font-weight:600}.b{background:#3d7eff;height:.7rem;display:inline-block}
.b.w{background:#d9480f}code{font-size:12.5px}</style>)";

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return escaped(value.get<std::string>());
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return escaped(value.dump());
}

std::string row(const std::vector<std::string>& cells, size_t first_number) {
  std::string out = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i)
    out += fmt::format("<td{}>{}</td>", i >= first_number ? " class=\"n\"" : "", cells[i]);
  return out + "</tr>\n";
}

std::string table(const std::string& title, const std::vector<const char*>& heads, const std::string& rows) {
  std::string out = fmt::format("<h2>{}</h2><table><tr>", title);
  for (const char* head : heads) out += fmt::format("<th>{}</th>", head);
  return out + "</tr>\n" + rows + "</table>\n";
}

std::string layers_table(const Json& agreement) {
  std::string rows;
  for (const Json& l : agreement.at("layers")) {
    const double sqnr = l.at("sqnr").get<double>();
    const double width = std::clamp(sqnr, 0.0, 60.0) / 60 * 100;
    rows += row({"<code>" + text_of(l.at("tensor")) + "</code>",
                 fmt::format("<span class=\"b{}\" style=\"width:{:.0f}%\"></span>", sqnr < 20 ? " w" : "", width),
                 fmt::format("{:.1f}", sqnr), fmt::format("{:.1f}", l.at("before").get<double>() - sqnr),
                 fmt::format("{:.3f} %", 100 * l.at("saturated").get<double>()), text_of(l.at("worst").at("sample"))},
                2);
  }
  return table("Layers, in order: agreement with the float model",
               {"tensor", "", "SQNR dB", "lost here", "saturated", "worst sample"}, rows);
}

std::string outputs_table(const Json& agreement) {
  std::string rows;
  for (const Json& o : agreement.at("outputs")) {
    std::string worst;
    for (const Json& w : o.at("worst"))
      worst += fmt::format("{}{} ({:.1f} dB)", worst.empty() ? "" : ", ", text_of(w.at("sample")),
                           w.at("sqnr").get<double>());
    rows += row({"<code>" + text_of(o.at("output")) + "</code>", worst, text_of(o.at("sqnr")), text_of(o.at("cosine")),
                 text_of(o.at("top1"))},
                2);
  }
  return table(fmt::format("Outputs, {} samples", agreement.at("samples").dump()),
               {"output", "worst samples", "SQNR dB", "cosine", "same top-1"}, rows);
}

std::string tensors_table(const Json& document) {
  std::string rows;
  for (const Json& t : document.at("tensors"))
    rows += row({"<code>" + text_of(t.at("tensor")) + "</code>", text_of(t.at("dtype")), text_of(t.at("scale")),
                 text_of(t.at("zero_point")), text_of(t.at("range")[0]), text_of(t.at("range")[1]),
                 t.contains("own_sqnr") ? text_of(t.at("own_sqnr")) : ""},
                2);
  return table("Pairs", {"tensor", "codes", "scale", "zero point", "low", "high", "own SQNR dB"}, rows);
}

std::string float_table(const Json& document) {
  std::string rows;
  for (const Json& m : document.at("float"))
    rows += row({"<code>" + text_of(m.at("group")) + "</code>", text_of(m.at("code")), text_of(m.at("message"))}, 9);
  return table("Modules in floating point", {"module", "reason", ""}, rows);
}

/// The metric over something else of the frontier's points; the chosen point is filled.
std::string drawing_of(const Json& search, const char* across, const std::function<double(const Json&)>& at,
                       const std::string& axis) {
  constexpr double kWidth = 640, kHeight = 220, kMargin = 40;
  const Json& points = search.at("frontier");
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Json& p : points) {
    low = std::min(low, p.at("metric").get<double>());
    high = std::max(high, p.at("metric").get<double>());
  }
  std::string line, dots;
  for (size_t i = 0; i < points.size(); ++i) {
    const double metric = points[i].at("metric").get<double>();
    const double x = kMargin + at(points[i].at(across)) * (kWidth - 2 * kMargin);
    const double y = kHeight - kMargin - (high > low ? (metric - low) / (high - low) : 0.5) * (kHeight - 2 * kMargin);
    line += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" stroke=\"#3d7eff\" fill=\"{}\"><title>{} left, "
        "{:.4g}</title></circle>",
        x, y, i == search.at("chosen").get<size_t>() ? "#3d7eff" : "#fff", points[i].at("left").dump(), metric);
  }
  return fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" role=\"img\"><path d=\"M{2} {2}V{3}H{4}\" fill=\"none\" stroke=\"#99a\"/>"
      "<polyline points=\"{5}\" fill=\"none\" stroke=\"#3d7eff\"/>{6}<text x=\"{4}\" y=\"{1}\" dy=\"-12\" "
      "text-anchor=\"end\">{9}</text><text x=\"4\" y=\"{2}\" dy=\"-8\">metric: {7:.4g} to {8:.4g}</text></svg>\n",
      kWidth, kHeight, kMargin, kHeight - kMargin, kWidth - kMargin, line, dots, low, high, axis);
}

/// The metric over the share of multiply-adds in codes, and over the predicted time from 0 to the longest.
std::string frontier_of(const Json& search) {
  const Json& points = search.at("frontier");
  std::string rows;
  double slowest = search.at("predicted_float_ms").get<double>();
  for (const Json& p : points) {
    slowest = std::max(slowest, p.at("predicted_ms").get<double>());
    rows += row({p.at("left").dump(), fmt::format("{:.1f} %", 100 * p.at("share").get<double>()),
                 fmt::format("{:.3g} ms", p.at("predicted_ms").get<double>()),
                 fmt::format("{:.5g}", p.at("metric").get<double>()),
                 fmt::format("{:.2f} %", 100 * p.at("drop").get<double>())},
                0);
  }
  const auto share = [](const Json& value) { return value.get<double>(); };
  const auto time = [slowest](const Json& value) { return slowest > 0 ? value.get<double>() / slowest : 0; };
  return table("Frontier, on samples of calibration",
               {"left in float", "multiply-adds in codes", "predicted time", "metric", "drop"}, rows) +
         drawing_of(search, "share", share, "multiply-adds in codes: 0 to 100 %") +
         drawing_of(search, "predicted_ms", time,
                    fmt::format("predicted time of one core: 0 to {:.3g} ms, float {:.3g} ms", slowest,
                                search.at("predicted_float_ms").get<double>()));
}

}  // namespace

std::string report_page(const Json& document) {
  std::string page = kHead;
  page += fmt::format("<h1>{}</h1><p>For {}, {} codes, method {}, {} samples: {} points on {} tensors.</p>\n",
                      text_of(document.value("model", Json(""))), text_of(document.at("for")),
                      text_of(document.at("activations")), text_of(document.at("method")),
                      document.at("calibrated_with").dump(), document.at("points").dump(), document.at("pairs").dump());
  for (const Json& warning : document.at("warnings")) page += "<p>warning: " + text_of(warning) + "</p>\n";
  if (const Json& agreement = document.at("agreement"); !agreement.is_null())
    page += outputs_table(agreement) + layers_table(agreement);
  if (document.contains("metric")) {
    const Json& metric = document.at("metric");
    page += fmt::format("<p>metric {}: {:.5g}, of the float model {:.5g}.</p>\n", text_of(metric.at("name")),
                        metric.at("codes").get<double>(), metric.at("float").get<double>());
  }
  if (document.contains("search")) page += frontier_of(document.at("search"));
  page += tensors_table(document) + float_table(document);
  return page + "</html>\n";
}

void write_report(const std::string& path, const Json& document) {
  const bool html = path.ends_with(".html");
  if (!html && !path.ends_with(".json"))
    throw fail(E::bad_option, "a report is a .json or an .html file, not \"{}\"", path);
  if (html && !document.contains("tensors"))
    throw fail(E::bad_option, "only models with pairs have a page, not \"{}\"", path).hint("name a .json file");
  AtomicFile file(path);
  file.write(html ? report_page(document) : document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  file.commit();
}

}  // namespace opfuse::quantization
