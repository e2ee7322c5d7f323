// Console output: units, tables, progress.
#include "console.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "talk.hpp"
#include "words.hpp"

namespace opfuse::cli {
namespace {

struct Progress {
  std::string step;
  int64_t since_ns = 0, drawn_ns = 0;
  bool shown = false;
};
Progress g_progress;  // the one line on the one terminal

std::string scaled(double value, const char* const* units, int count) {
  int unit = 0;
  while (unit + 1 < count && std::fabs(value) >= 1000) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

}  // namespace

std::string human_bytes(double bytes) {
  static const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  return scaled(bytes, units, 5);
}

std::string human_flops(double flops) {
  static const char* const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
  return scaled(flops, units, 5);
}

std::string milliseconds(double ms) {
  const int decimals = ms >= 100 ? 1 : ms >= 10 ? 2 : ms >= 1 ? 3 : 4;
  return fmt::format("{:.{}f}", ms, decimals);
}

Table::Table(std::vector<std::string> header) : header_(std::move(header)) {}
void Table::row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::text(int indent) const {
  std::vector<bool> right;
  std::vector<size_t> width;
  std::vector<std::string> titles;
  for (const std::string& title : header_) {
    right.push_back(!title.empty() && title[0] == '>');
    titles.push_back(right.back() ? title.substr(1) : title);
    width.push_back(titles.back().size());
  }
  for (const auto& cells : rows_)
    for (size_t i = 0; i < cells.size() && i < width.size(); ++i) width[i] = std::max(width[i], cells[i].size());
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text(static_cast<size_t>(indent), ' ');
    for (size_t i = 0; i < width.size(); ++i) {
      const std::string cell = i < cells.size() ? cells[i] : "";
      text += right[i] ? fmt::format("{:>{}}  ", cell, width[i]) : fmt::format("{:<{}}  ", cell, width[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += fitted(text) + "\n";
  };
  line(titles);
  for (const auto& cells : rows_) line(cells);
  return out;
}

void show_progress(const std::string& step, size_t done, size_t total) {
  if (is_quiet() || !isatty(STDERR_FILENO)) return;
  if (step != g_progress.step) {
    finish_progress();
    g_progress = {step, now_ns(), 0, false};
  }
  const int64_t now = now_ns();
  if (now - g_progress.since_ns < 1'000'000'000 || now - g_progress.drawn_ns < 100'000'000 || total == 0) return;
  g_progress.drawn_ns = now;
  done = std::min(done, total);
  const size_t filled = 24 * done / total;
  const double spent = static_cast<double>(now - g_progress.since_ns) * 1e-9;
  const double left = done > 0 ? spent * static_cast<double>(total - done) / static_cast<double>(done) : 0;
  tell(fmt::format("\r{} [{}{}] {:3d}%  {:.0f} s left ", step, std::string(filled, '#'), std::string(24 - filled, '-'),
                   static_cast<int>(100 * done / total), left));
  std::fflush(stderr);
  g_progress.shown = true;
}

void finish_progress() {
  if (g_progress.shown) tell("\r\033[K");
  g_progress = {};
}

StepTimer::StepTimer(std::string title) : title_(std::move(title)), start_ns_(now_ns()) {}
double StepTimer::seconds() const { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }
StepTimer::~StepTimer() {
  finish_progress();
  say(fmt::format("  {:<34} {:6.2f} s", title_, seconds()));
}

}  // namespace opfuse::cli
