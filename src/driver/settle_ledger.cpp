// Values are known by name through all stages: the launches of a value are those that write its buffer, or, of a value
// inside a group, those that write the group's results. A value that no launch writes is a place in other memory.
//
//     producer and consumer in one launch           one_launch
//     a node whose result no launch stores is where its name is among the sources
//     no launch of its own on one side               view, or copy where the operand of a concat is copied
//     a view of what another launch stored           two_launches, of which the reader is the second
//     else                                           two_launches
#include "driver/settle_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

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
    return is_a<Gru>(node) || is_a<Lstm>(node) || is_a<Rnn>(node) ? launches_with(node) : Launches{};
  }
  /// Those that have the node among their sources; empty: it is a view, or no longer there.
  Launches launches_with(const Node& node) const {
    Launches all;
    for (const Source& source : node.sources)
      if (const auto at = by_source_.find(source.name); at != by_source_.end())
        all.insert(at->second.begin(), at->second.end());
    return all;
  }
  bool knows(const std::string& value) const {
    return known_.contains(value) || interior_.contains(value) || written_.contains(value);
  }

 private:
  std::unordered_map<std::string, Launches> written_, interior_, by_source_;  // looked up, never iterated
  std::unordered_set<std::string> known_;

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

/// The first launch of both; -1: they have none in common.
int common(const Launches& a, const Launches& b) {
  const auto at = std::find_if(a.begin(), a.end(), [&](int launch) { return b.contains(launch); });
  return at == a.end() ? -1 : *at;
}
bool meet(const Launches& a, const Launches& b) { return common(a, b) >= 0; }

/// What passes joined, by the nodes' sources.
class Joined {
 public:
  explicit Joined(const std::vector<ShapeVerdict>& verdicts) : verdicts_(verdicts) {
    for (size_t i = 0; i < verdicts.size(); ++i)
      for (const std::string& source : verdicts[i].sources)
        if (!verdicts[i].refused) by_source_[source].insert(i);
  }

  /// The first pass that made one launch of the two; else the launch's name.
  std::string by(const Node& producer, const Node& consumer, const std::string& launch) const {
    const std::set<size_t> others = of(consumer);
    for (const size_t i : of(producer))
      if (others.contains(i)) return verdicts_[i].pass;
    return launch;
  }

 private:
  const std::vector<ShapeVerdict>& verdicts_;
  std::unordered_map<std::string, std::set<size_t>> by_source_;  // looked up, never iterated

  std::set<size_t> of(const Node& node) const {
    std::set<size_t> all;
    for (const Source& source : node.sources)
      if (const auto at = by_source_.find(source.name); at != by_source_.end())
        all.insert(at->second.begin(), at->second.end());
    return all;
  }
};

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

class Settler {
 public:
  Settler(const Graph& prepared, const FusionPlan& plan, const Graph& shaped, const std::vector<ShapeVerdict>& verdicts,
          const Program& program, const LaunchPrices& prices)
      : names_(prepared),
        executed_(shaped, program),
        stored_(executed_),
        prices_(prepared, program, prices),
        refused_(prices.refused),
        joined_(verdicts),
        program_(program) {
    for (const EdgeVerdict& edge : plan.edges)
      if (!edge.decline.code.empty()) declines_.emplace(edge.producer, edge.decline);
  }

  void settle(EdgeVerdict& edge) {
    const Node *producer = names_.find(edge.producer), *consumer = names_.find(edge.consumer);
    if (!producer || !consumer) return;
    if (reader_.node != consumer) reader_ = consumer_of(*consumer, executed_);
    for (const Value* v : producer->outputs)
      if (value_name(*v) == edge.tensor) settle(edge, *v);
  }

 private:
  NodeNames names_;
  Executed executed_;
  Stored stored_;
  EdgePrices prices_;
  const std::map<std::string, Decline>& refused_;
  Joined joined_;
  const Program& program_;
  std::map<std::string, Decline> declines_;  ///< of the plan: the first of a node's result
  Consumer reader_;

  /// Both ends of an edge.
  struct Ends {
    Launches makes, takes;
    Launches made;   ///< without those behind a view
    Launches holds;  ///< with the producer among their sources
    bool copied = false, absorbed = false;
    std::string copy;  ///< name of the launch
  };

  Ends ends_of(const EdgeVerdict& edge, const Value& value) {
    Ends e{executed_.launches_of(edge.tensor), reader_.launches, {}, executed_.launches_with(*value.producer)};
    if (e.makes.empty()) e.makes = executed_.launches_of_layer(*value.producer);
    const auto own = std::find(reader_.copied.begin(), reader_.copied.end(), &value);
    e.copied = own != reader_.copied.end();
    const bool others_copied = std::count(reader_.copied.begin(), reader_.copied.end(), &value) <
                               static_cast<std::ptrdiff_t>(reader_.copied.size());
    if (e.copied) e.copy = name_of(reader_.copies[static_cast<size_t>(own - reader_.copied.begin())]);
    if (others_copied && !e.copied) e.takes.clear();  // the concat has launches for its other operands alone
    const Launches inside = executed_.launches_with(*reader_.node);
    if (e.takes.empty() && !others_copied && !inside.empty()) e.takes = {*inside.begin()};
    const bool stored_nowhere = !executed_.knows(edge.tensor);
    e.absorbed = stored_nowhere && !e.takes.empty() && (e.holds.empty() || meet(e.holds, e.takes));
    if (e.makes.empty() && !meet(e.holds, e.takes)) e.makes = e.holds;
    e.made = e.makes;
    if (e.makes.empty() && !e.copied && !e.absorbed && !e.takes.empty() && !edge.decline.code.empty())
      if (const Launches& behind = stored_.behind(value); !meet(behind, e.takes)) e.makes = behind;
    return e;
  }

  void settle(EdgeVerdict& edge, const Value& value) {
    const Ends e = ends_of(edge, value);
    if (!e.copied && (e.absorbed || meet(e.makes, e.takes))) {
      edge.executed = kOneLaunch;
      const int both = std::max(common(e.makes, e.takes), common(e.holds, e.takes));
      const std::string launch = name_of(both >= 0 ? both : *e.takes.begin());
      edge.by = edge.group.empty() ? joined_.by(*value.producer, *reader_.node, launch) : edge.group;
    } else if (e.copied) {
      edge.executed = kCopy;
      edge.by = e.copy;
    } else if (e.makes.empty() || e.takes.empty()) {
      edge.executed = kView;
      edge.by = std::string(e.makes.empty() ? value.producer->op->name : reader_.node->op->name);
    } else {
      return settle_apart(edge, value, e);
    }
    if (edge.executed != kCopy) edge.decline = {};
    if (edge.executed != kCopy) edge.price.reset();
  }

  void settle_apart(EdgeVerdict& edge, const Value& value, const Ends& e) {
    edge.executed = kTwoLaunches;
    edge.by.clear();
    if (edge.decline.code == "moved_by_attention" && edge.price && prices_.known()) {
      Launches own = e.made;
      own.insert(e.takes.begin(), e.takes.end());
      edge.price->apart += prices_.of_movements(names_, own);
    }
    if (edge.group.empty()) return;
    edge.decline = decline_within(edge, value);
    edge.group.clear();
    if (prices_.known()) edge.price = prices_.between(value, *reader_.node, e.makes, e.takes);
  }

  /// A node that a pass moved to what reads its result, as from codes to floats, is apart from its producer for the
  /// reason that kept it apart from there; else the group is several launches.
  Decline decline_within(const EdgeVerdict& edge, const Value& value) const {
    const auto moved = declines_.find(edge.consumer);
    if (moved != declines_.end() &&
        !meet(executed_.launches_with(*value.producer), executed_.launches_with(*reader_.node)))
      return moved->second;
    const std::string what = fmt::format("{} runs as several launches: \"{}\" is stored between \"{}\" and \"{}\"",
                                         edge.group, edge.tensor, edge.producer, edge.consumer);
    if (const auto at = refused_.find(edge.group); at != refused_.end())
      return {at->second.code, what + "; " + at->second.message, {edge.group}};
    return {"several_launches", what, {edge.group}};
  }

  std::string name_of(int launch) const { return program_.launches[static_cast<size_t>(launch)].name; }
};

}  // namespace

void settle_ledger(const Graph& prepared, FusionPlan& plan, const Graph& shaped,
                   const std::vector<ShapeVerdict>& verdicts, const Program& program, const LaunchPrices& prices) {
  Settler settler(prepared, plan, shaped, verdicts, program, prices);
  for (EdgeVerdict& edge : plan.edges) settler.settle(edge);
}

}  // namespace opfuse
