// Values are known by name through all stages: the launches of a value are those that write its buffer, or, of a value
// inside a group, those that write the group's results. A value that no launch writes is a place in other memory.
//
//     producer and consumer in one launch           one_launch
//     no launch of its own on one side               view, or copy where the operand of a concat is copied
//     a view of what another launch stored           two_launches, of which the reader is the second
//     else                                           two_launches
#include "driver/settle_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "fusion/names.hpp"
#include "ir/body.hpp"
#include "ir/value_name.hpp"
#include "match/movement.hpp"
#include "ops/cast.hpp"
#include "ops/is_a.hpp"
#include "ops/recurrent.hpp"

namespace opfuse {
namespace {

using Launches = std::set<int>;

class Executed {
 public:
  Executed(const Graph& shaped, const Program& program) {
    std::map<int, Launches> writers;  // by buffer
    for (size_t l = 0; l < program.launches.size(); ++l) {
      const Launch& launch = program.launches[l];
      for (size_t i = 0; i < launch.buffers.size(); ++i)
        if (launch.buffers[i] >= 0 && (launch.reference || launch.region.params[i].role == ParamRole::output))
          writers[launch.buffers[i]].insert(static_cast<int>(l));
    }
    for (size_t l = 0; l < program.launches.size(); ++l)
      for (const std::string& source : program.launches[l].sources) by_source_[source].insert(static_cast<int>(l));
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const std::string& name = program.buffers[b].name;
      known_.insert(name);
      for (const int launch : writers[static_cast<int>(b)]) {
        written_[name].insert(launch);
        written_[whole_of(name)].insert(launch);
      }
    }
    enter(shaped);
  }

  /// Empty: it is a view, or no longer there.
  Launches launches_of(const std::string& value) const {
    if (const auto at = written_.find(value); at != written_.end()) return at->second;
    if (const auto at = interior_.find(value); at != interior_.end()) return at->second;
    return {};
  }
  /// Of a recurrent layer, which is a product and loops that name their values anew; empty: the node is none.
  Launches launches_of_layer(const Node& node) const {
    Launches all;
    if (!is_a<Gru>(node) && !is_a<Lstm>(node) && !is_a<Rnn>(node)) return all;
    for (const Source& source : node.sources)
      if (const auto at = by_source_.find(source.name); at != by_source_.end())
        all.insert(at->second.begin(), at->second.end());
    return all;
  }
  bool knows(const std::string& value) const {
    return known_.contains(value) || interior_.contains(value) || written_.contains(value);
  }

 private:
  std::map<std::string, Launches> written_, interior_, by_source_;
  std::set<std::string> known_;

  /// A part of a value, of an image or a range of channels, has its name and "[...]" behind it.
  static std::string whole_of(const std::string& name) {
    const size_t at = name.rfind('[');
    return at == std::string::npos || at == 0 || name.back() != ']' ? name : name.substr(0, at);
  }

  Launches launches_of_results(const Node& node) const {
    Launches all;
    for (const Value* v : node.outputs)
      if (const auto at = written_.find(value_name(*v)); at != written_.end())
        all.insert(at->second.begin(), at->second.end());
    return all;
  }

  /// A cast that widening put behind a result has the result's name; what the cast reads is that value too.
  void add_widened(const Node& node) {
    if (!is_a<Cast>(node) || !node.sources.empty()) return;
    const Launches wide = launches_of(value_name(*node.input(0)));
    written_[value_name(*node.output())].insert(wide.begin(), wide.end());
  }

  /// Loops have launches in their bodies; groups are launches.
  void enter(const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      add_widened(*node);
      if (!node->body) continue;
      if (stands_for_body(*node))
        enter(*node, launches_of_results(*node));
      else
        enter(*node->body);
    }
  }

  void enter(const Node& node, const Launches& launches) {
    for (const Node* inner : node.body->nodes()) {
      for (const Value* v : inner->outputs) {
        interior_[value_name(*v)].insert(launches.begin(), launches.end());
        interior_[whole_of(value_name(*v))].insert(launches.begin(), launches.end());
      }
      if (inner->body) enter(*inner, launches);
    }
  }
};

bool meet(const Launches& a, const Launches& b) {
  return std::any_of(a.begin(), a.end(), [&](int launch) { return b.contains(launch); });
}

bool has_source(const ShapeVerdict& verdict, const Node& node) {
  return std::any_of(node.sources.begin(), node.sources.end(), [&](const Source& source) {
    return std::find(verdict.sources.begin(), verdict.sources.end(), source.name) != verdict.sources.end();
  });
}

/// The pass that made one launch of the two; else the launch's name.
std::string joined_by(const Node& producer, const Node& consumer, const std::vector<ShapeVerdict>& verdicts,
                      const std::string& launch) {
  for (const ShapeVerdict& verdict : verdicts)
    if (!verdict.refused && has_source(verdict, producer) && has_source(verdict, consumer)) return verdict.pass;
  return launch;
}

/// A node that reads values, once for all of its edges.
struct Consumer {
  const Node* node = nullptr;
  Launches launches;                      ///< of its results
  std::vector<const Value*> copied = {};  ///< operands of a concat that launches copy into its result
  std::vector<int> copies = {};           ///< those launches
};

Consumer consumer_of(const Node& node, const Executed& executed) {
  Consumer c{&node, executed.launches_of_layer(node)};
  for (const Value* v : node.outputs) {
    c.launches.merge(executed.launches_of(value_name(*v)));
    for (size_t i = 0; i < node.inputs.size() && node.op->moves == Moves::all; ++i)
      if (const Launches own = executed.launches_of(fmt::format("{}[{}]", value_name(*v), i)); !own.empty()) {
        c.copied.push_back(node.inputs[i]);
        c.copies.push_back(*own.begin());
      }
  }
  return c;
}

/// The launches that stored what a view shows: of its data, of a concat all operands.
class Stored {
 public:
  explicit Stored(const Executed& executed) : executed_(executed) {}

  const Launches& behind(const Value& view) {
    const auto known = launches_.find(&view);
    if (known != launches_.end()) return known->second;
    const Node* node = view.producer;
    Launches all = node ? executed_.launches_of_layer(*node) : Launches{};
    if (!all.empty()) return launches_[&view] = all;
    const bool any = node && node->op->moves == Moves::all;
    for (size_t i = 0; node && i < (any ? node->inputs.size() : std::min<size_t>(node->inputs.size(), 1)); ++i) {
      if (!node->inputs[i]) continue;
      Launches own = executed_.launches_of(value_name(*node->inputs[i]));
      if (own.empty()) own = behind(*node->inputs[i]);
      all.insert(own.begin(), own.end());
    }
    return launches_[&view] = all;
  }

 private:
  const Executed& executed_;
  std::map<const Value*, Launches> launches_;
};

/// Both forms of an edge between launches of one group, as they were lowered. A launch or reader of many edges is
/// looked at once.
class EdgePrices {
 public:
  EdgePrices(const Graph& graph, const Program& program, const LaunchPrices& prices)
      : graph_(graph), program_(program), prices_(prices) {}

  PricePair between(const Value& value, const Node& reader, const Launches& makes, const Launches& takes) {
    Launches both = makes;
    both.insert(takes.begin(), takes.end());
    PricePair price;
    for (const int launch : both) price.apart += of_launch(launch);
    if (prices_.reads) {
      const OperandReads& reads = reads_of(reader);
      for (size_t i = 0; i < reader.inputs.size() && !price.recompute; ++i)
        if (reader.inputs[i] == &value) price.recompute = reads[i];
    }
    add_bounds(price, graph_, value, reader, {}, prices_.traffic);
    return price;
  }
  bool known() const { return static_cast<bool>(prices_.launch); }

  /// Of launches that only move elements: attention took them for its loads and stores in the plan, and did not.
  GroupPrice of_movements(const NodeNames& names, const Launches& launches) {
    GroupPrice sum;
    for (const int launch : launches) {
      const auto& sources = program_.launches[static_cast<size_t>(launch)].sources;
      const bool moves = std::all_of(sources.begin(), sources.end(), [&](const std::string& source) {
        const Node* node = names.find(source);
        return node && moves_elements(*node);
      });
      if (moves) sum += of_launch(launch);
    }
    return sum;
  }

 private:
  const Graph& graph_;
  const Program& program_;
  const LaunchPrices& prices_;
  std::map<int, GroupPrice> launches_;
  std::map<const Node*, OperandReads> reads_;

  GroupPrice of_launch(int number) {
    const auto at = launches_.find(number);
    if (at != launches_.end()) return at->second;
    const Launch& launch = program_.launches[static_cast<size_t>(number)];
    return launches_[number] = launch.reference ? GroupPrice{} : prices_.launch(launch.region);
  }
  const OperandReads& reads_of(const Node& reader) {
    const auto at = reads_.find(&reader);
    return at != reads_.end() ? at->second : reads_[&reader] = prices_.reads(reader);
  }
};

void settle(EdgeVerdict& edge, const Value& value, const Consumer& reader, const Executed& executed, Stored& stored,
            const std::vector<ShapeVerdict>& verdicts, const Program& program, EdgePrices& prices,
            const NodeNames& names) {
  const Node& consumer = *reader.node;
  Launches makes = executed.launches_of(edge.tensor), takes = reader.launches;
  if (makes.empty()) makes = executed.launches_of_layer(*value.producer);
  const auto of_this = static_cast<size_t>(std::count(reader.copied.begin(), reader.copied.end(), &value));
  const bool copied = of_this > 0, others_copied = of_this < reader.copied.size();
  if (others_copied && !copied) takes.clear();  // the concat has launches for its other operands alone
  const bool absorbed = !executed.knows(edge.tensor) && !takes.empty();
  const auto own = std::find(reader.copied.begin(), reader.copied.end(), &value);
  const int named = own != reader.copied.end() ? reader.copies[static_cast<size_t>(own - reader.copied.begin())]
                    : takes.empty()            ? -1
                                               : *takes.begin();
  const std::string first = named < 0 ? "" : program.launches[static_cast<size_t>(named)].name;
  const Launches made = makes;
  if (makes.empty() && !copied && !absorbed && !takes.empty() && !edge.decline.code.empty())
    if (const Launches& behind = stored.behind(value); !meet(behind, takes)) makes = behind;
  if (!copied && (absorbed || meet(makes, takes))) {
    edge.executed = kOneLaunch;
    edge.by = edge.group.empty() ? joined_by(*value.producer, consumer, verdicts, first) : edge.group;
  } else if (copied) {
    edge.executed = kCopy;
    edge.by = first;
  } else if (makes.empty() || takes.empty()) {
    edge.executed = kView;
    edge.by = std::string(makes.empty() ? value.producer->op->name : consumer.op->name);
  } else {
    edge.executed = kTwoLaunches;
    edge.by.clear();
    if (edge.decline.code == "moved_by_attention" && edge.price && prices.known()) {
      Launches own = made;
      own.insert(takes.begin(), takes.end());
      edge.price->apart += prices.of_movements(names, own);
    }
    if (edge.group.empty()) return;
    edge.decline = {"several_launches",
                    fmt::format("{} runs as several launches: \"{}\" is stored between \"{}\" and \"{}\"", edge.group,
                                edge.tensor, edge.producer, edge.consumer),
                    {edge.group}};
    edge.group.clear();
    if (prices.known()) edge.price = prices.between(value, consumer, makes, takes);
    return;
  }
  if (edge.executed != kCopy) edge.decline = {};
  if (edge.executed != kCopy) edge.price.reset();
}

}  // namespace

void settle_ledger(const Graph& prepared, FusionPlan& plan, const Graph& shaped,
                   const std::vector<ShapeVerdict>& verdicts, const Program& program, const LaunchPrices& prices) {
  const NodeNames names(prepared);
  const Executed executed(shaped, program);
  Stored stored(executed);
  EdgePrices priced(prepared, program, prices);
  Consumer reader;
  for (EdgeVerdict& edge : plan.edges) {
    const Node *producer = names.find(edge.producer), *consumer = names.find(edge.consumer);
    if (!producer || !consumer) continue;
    if (reader.node != consumer) reader = consumer_of(*consumer, executed);
    for (const Value* v : producer->outputs)
      if (value_name(*v) == edge.tensor) settle(edge, *v, reader, executed, stored, verdicts, program, priced, names);
  }
}

}  // namespace opfuse
