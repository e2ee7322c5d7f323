// The options of one verb. The parser behind them (CLI11) is known to flag_set.cpp and main.cpp alone: its header takes
// seconds to compile, and every verb includes this one.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace opfuse::cli {

/// An option that was added; its functions refine it and can be chained with `->`.
class FlagOption {
 public:
  explicit FlagOption(CLI::Option* option) : option_(option) {}
  FlagOption* operator->() { return this; }

  FlagOption type_name(const std::string& name);  ///< what --help calls the value
  FlagOption description(const std::string& text);
  FlagOption required();
  FlagOption expected(int values);
  FlagOption delimiter(char separator);
  FlagOption allow_extra_args(bool allow);
  FlagOption capture_default_str();  ///< --help shows the value that the variable has now
  FlagOption range(int lowest, int highest);
  FlagOption one_of(const std::vector<std::string>& values);

 private:
  CLI::Option* option_;
};

/// An option as `opfuse options` lists it.
struct OptionRow {
  std::string name, all_names, value, default_value, meaning;
  bool positional = false;
};

class FlagSet {
 public:
  explicit FlagSet(CLI::App* app) : app_(app) {}

  /// `name`: "--long", "-s,--long", "--long,--otherName" or "POSITIONAL". Instantiated in flag_set.cpp for the types in
  /// use.
  template <class T>
  FlagOption add_option(const std::string& name, T& value, const std::string& meaning);
  FlagOption add_flag(const std::string& name, bool& value, const std::string& meaning);
  FlagOption add_option_function(const std::string& name, const std::function<void(const std::string&)>& take,
                                 const std::string& meaning);
  /// An option that --help and rows() do not show; its value, if it has one, is not kept.
  void add_hidden(const std::string& name, bool has_value, const std::function<void()>& given);

  FlagOption get_option(const std::string& name);
  bool given(const std::string& name) const;  ///< the user named it

  std::string verb() const;
  std::vector<OptionRow> rows() const;
  std::vector<FlagSet> all_verbs() const;  ///< those of the program that this one belongs to
  /// Names of the options that `add` adds to a verb.
  static std::vector<std::string> names_added_by(const std::function<void(FlagSet&)>& add);

 private:
  CLI::App* app_;
};

}  // namespace opfuse::cli
