// One command has one set of operators, whatever models it reads.
#include "operator_flag.hpp"

#include <algorithm>

namespace opfuse::cli {

static std::vector<std::string>& given() {
  static std::vector<std::string> arguments;
  return arguments;
}

const std::vector<std::string>& given_operators() { return given(); }

void add_operator_flag(FlagSet& app) {
  const std::vector<OptionRow> rows = app.rows();
  // diff reads two: A and B
  const auto takes_model = [](const OptionRow& r) { return r.positional && (r.name == "MODEL" || r.name == "A"); };
  if (std::none_of(rows.begin(), rows.end(), takes_model)) return;
  app.add_option(
         "--operator", given(),
         "an operator of a custom domain as an expression, 'swish(x, b) = x * sigmoid(b * x)', or a file of them "
         "(repeatable)")
      ->type_name("TEXT|FILE")
      ->allow_extra_args(false);
}

}  // namespace opfuse::cli
