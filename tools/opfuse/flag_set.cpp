// One function of CLI11 for each of ours.
#include "flag_set.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace opfuse::cli {

FlagOption FlagOption::type_name(const std::string& name) { return FlagOption(option_->type_name(name)); }
FlagOption FlagOption::description(const std::string& text) { return FlagOption(option_->description(text)); }
FlagOption FlagOption::required() { return FlagOption(option_->required()); }
FlagOption FlagOption::expected(int values) { return FlagOption(option_->expected(values)); }
FlagOption FlagOption::delimiter(char separator) { return FlagOption(option_->delimiter(separator)); }
FlagOption FlagOption::allow_extra_args(bool allow) { return FlagOption(option_->allow_extra_args(allow)); }
FlagOption FlagOption::capture_default_str() { return FlagOption(option_->capture_default_str()); }
FlagOption FlagOption::range(int lowest, int highest) {
  return FlagOption(option_->check(CLI::Range(lowest, highest)));
}
FlagOption FlagOption::one_of(const std::vector<std::string>& values) {
  return FlagOption(option_->check(CLI::IsMember(values)));
}

/// Counts, sizes, times, tolerances: none of our single numbers may be negative.
static std::string refuse_negative(const std::string& value) {
  return value.starts_with("-") ? "'" + value + "' is negative" : "";
}

template <class T>
FlagOption FlagSet::add_option(const std::string& name, T& value, const std::string& meaning) {
  CLI::Option* option = app_->add_option(name, value, meaning);
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::optional<double>>) option->check(refuse_negative);
  return FlagOption(option);
}
FlagOption FlagSet::add_flag(const std::string& name, bool& value, const std::string& meaning) {
  return FlagOption(app_->add_flag(name, value, meaning));
}
FlagOption FlagSet::add_option_function(const std::string& name, const std::function<void(const std::string&)>& take,
                                        const std::string& meaning) {
  return FlagOption(app_->add_option_function<std::string>(name, take, meaning));
}

void FlagSet::add_hidden(const std::string& name, bool has_value, const std::function<void()>& given) {
  CLI::Option* option = has_value
                            ? app_->add_option_function<std::string>(name, [given](const std::string&) { given(); })
                            : app_->add_flag_function(name, [given](int64_t) { given(); });
  option->group("");
}

template FlagOption FlagSet::add_option(const std::string&, std::string&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, int&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, int64_t&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, uint64_t&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, double&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, std::optional<double>&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, std::vector<double>&, const std::string&);
using Two = std::pair<std::string, std::string>;
template FlagOption FlagSet::add_option(const std::string&, Two&, const std::string&);
template FlagOption FlagSet::add_option(const std::string&, std::vector<Two>&, const std::string&);

FlagOption FlagSet::get_option(const std::string& name) { return FlagOption(app_->get_option(name)); }
bool FlagSet::given(const std::string& name) const { return app_->get_option(name)->count() > 0; }
std::string FlagSet::verb() const { return app_->get_name(); }

std::vector<OptionRow> FlagSet::rows() const {
  std::vector<OptionRow> rows;
  for (const CLI::Option* option : app_->get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    rows.push_back({option->get_name(false, true), option->get_name(true, true),
                    option->get_expected_max() > 0 ? option->get_type_name() : "", option->get_default_str(),
                    option->get_description(), option->get_positional()});
  return rows;
}

std::vector<std::string> FlagSet::names_added_by(const std::function<void(FlagSet&)>& add) {
  CLI::App scratch;
  scratch.set_help_flag();
  FlagSet set(&scratch);
  add(set);
  std::vector<std::string> names;
  for (const OptionRow& row : set.rows()) names.push_back(row.name);
  return names;
}

std::vector<FlagSet> FlagSet::all_verbs() const {
  std::vector<FlagSet> sets;
  for (CLI::App* verb : app_->get_parent()->get_subcommands([](const CLI::App*) { return true; }))
    sets.emplace_back(verb);
  return sets;
}

}  // namespace opfuse::cli
