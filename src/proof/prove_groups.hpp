// Every group of a program, proven twice: on the numbers of a run, and on drawn ones whose sums are exact.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proof/compare.hpp"
#include "proof/group_values.hpp"
#include "proof/launch_runner.hpp"
#include "routine/routine.hpp"

namespace opfuse {

class GroupProver {
 public:
  /// `graph`: what the program was lowered from, as graph_of_launches.
  GroupProver(const Graph& graph, const Program& program, const Executable& executable, const SymbolValues& symbols,
              const CompareOptions& options);

  /// The groups in their order, each on what the groups before it stored. Those that run image by image are proven for
  /// each image under the names of unroll_parts; the worst image is reported.
  std::vector<GroupComparison> run(const std::vector<Tensor>& inputs);

  /// The same run with every operand moved by noise: of half a unit at least, of the errors that `run` found.
  /// Outputs as tensors, in order. `seed` chooses the noise.
  std::vector<Tensor> run_with_noise(const std::vector<Tensor>& inputs, uint64_t seed);

  /// The first group that decided a tie otherwise than the graph in doubles does, by what the groups before it rounded
  /// (proof/tie_between_groups.cpp); nothing where that does not explain it. Behind `run`.
  std::optional<std::string> tie_between_groups(const std::vector<Tensor>& inputs);

  /// A graph output as its last group stored it.
  const Tensor* value(const std::string& name);

 private:
  struct Image {
    int64_t number = -1;         ///< part of a body; -1: none
    const Body* body = nullptr;  ///< that it is a part of
    std::string name(const std::string& value) const;
  };
  using Launches = std::vector<size_t>;
  void each_launch(const std::function<void(size_t index, const Image& image)>& body) const;
  std::string key(int buffer, const Image& image) const;
  bool is_given(const std::string& name) const;
  const Tensor& operand(int buffer, const Image& image);
  LaunchRunner::Operand operands(const Image& image);
  /// Weights that lie transformed for Winograd.
  struct Transformed {
    size_t stage = 0, param = 0;
    const Buffer* weights = nullptr;
    int row = -1, column = -1;  ///< domain axes of the image
    /// F(2x2, 3x3) halves sums of weights in each direction, nothing else: exact for multiples of 4.
    bool keeps_integers() const { return weights->layout.tile_h == 2 && weights->layout.tile_w == 2; }
  };
  /// What a launch is held to: the graph's operators on exact constants, its region, or its region in its own types.
  enum class Numbers { of_graph, of_region, of_type };
  std::vector<Transformed> transformed(const Launch& launch) const;
  BoundOptions bounds_of(const Launch& launch, const Image& image, Numbers numbers) const;
  GroupComparison prove(size_t index, const Image& image);
  void prove_real(const Launches& together, const Image& image, GroupComparison& result);
  void prove_placed(size_t index, GroupComparison& result);  ///< a launch of a plug-in
  void prove_routine(size_t index, GroupComparison& result);
  RoutineResult run_routine_on_values(const Launch& launch);
  std::string keep_exact_sizes(const Launch& launch, const RoutineResult& found, const GroupValues::Known& known);
  void prove_steps(const Body& loop);
  std::vector<Tensor> step_results(const Body& loop, const LoopRun& run);
  LoopRun run_drawn_steps(const Body& loop);
  std::vector<BoundedRun> bound_steps(const Body& loop, const LoopRun& run, bool real) const;
  size_t result_number(const std::string& name) const;
  void judge_steps(const StoredResult& stored, const Tensor& want, const BoundedRun& bounds, size_t param,
                   GroupComparison& result);
  void conclude(GroupComparison& result) const;
  void prove_exact(const Launches& together, const Image& image, GroupComparison& result);
  std::vector<BoundedRun> bound_run(const Launches& together, const LaunchRun& run, const Image& image,
                                    Numbers numbers) const;
  Proof judge_run(const Launches& together, const LaunchRun& run, const Image& image,
                  const std::vector<BoundedRun>& bounded, const std::vector<Tensor>& want) const;
  std::set<std::string> leaves_of(const Launches& together, const Image& image) const;
  bool explains(const Launches& together, const Image& image, const GroupValues::Known& chain,
                const std::map<int, const Tensor*>& apart_results);
  std::vector<const BoundedTensor*> parts_of(const Launches& together, const std::vector<BoundedRun>& bounded,
                                             int buffer) const;

  const Graph& graph_;
  const CompareOptions& options_;
  LaunchRunner runner_;
  GroupValues oracle_;
  GroupValues::Known values_;
  /// What no node of the graph computes: its region's numbers and errors, from numbers of `leaves`.
  struct Inner {
    BoundedTensor numbers;
    std::set<std::string> leaves;
  };
  std::map<std::string, Inner> inner_;
  std::map<std::string, double> bias_codes_;  ///< by result
  std::set<const void*> given_;               ///< where the numbers of the constants of the model lie
  std::map<std::string, double> noise_;       ///< by value: how far a run's numbers were off, of their root mean square
  std::map<size_t, GroupComparison> loops_;   ///< by launch: those of loops, which are proven together
};

}  // namespace opfuse
