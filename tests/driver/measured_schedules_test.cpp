// Schedules from a file of times: taken where this build measured them on this machine, left with a note elsewhere.
#include "driver/measured_schedules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "driver/compilation.hpp"
#include "link/generators.hpp"
#include "ops/registry.hpp"
#include "testing/temporary_folder.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kProduct = "graph (%x: f32[64,96], %w: f32[96,80]) { %y = matmul(%x, %w) @\"y\" return %y }";

std::string schedule_of(const Program& program) { return program.launches.at(0).schedule.text(); }

class MeasuredScheduleTest : public ::testing::Test {
 protected:
  TargetInfo target = host_target();
  test::TemporaryFolder folder;
  std::string file = folder.path("times.json");
  CompilationOptions options;
  Program predicted;
  Schedule other;  ///< another one that the generator would emit
  KnownTimes times;

  void SetUp() override {
    options.algorithms.threads = 1;
    predicted = lowered().program;
    predicted.notes.clear();
    const Launch& launch = predicted.launches.at(0);
    for (const Schedule& s :
         generator_for(target).candidates(launch.region, kernel_spec(predicted, launch).layouts, target, 12))
      if (s.text() != launch.schedule.text()) other = s;
    ASSERT_FALSE(other.skeleton.empty()) << "one schedule alone leaves nothing to choose";
    times = read_times({file}, target, 1);
  }

  Compilation lowered() const {
    Compilation c(parse_graph(kProduct, ops()), target, options);
    c.run_to(Milestone::lowered);
    return c;
  }

  void know(const std::string& form, double median, const std::string& machine, const std::string& build) {
    times.cache.add(launch_key(predicted, predicted.launches[0], machine), {form, median, 0.01, 20, build});
  }

  std::string build() const { return generator_for(target).fingerprint(); }
};

TEST_F(MeasuredScheduleTest, TheFastestIsTakenWhenCompilingWithMeasure) {
  know(form_of(predicted.launches[0].schedule), 20, times.machine, build());
  know(form_of(other), 10, times.machine, build());
  times.cache.write(file);
  options.timings = {file};
  EXPECT_EQ(schedule_of(lowered().program), schedule_of(predicted)) << "without --measure nothing is";
  options.algorithms.measure = true;
  const Compilation tuned = lowered();
  EXPECT_EQ(schedule_of(tuned.program), other.text());
  EXPECT_THAT(tuned.program.notes, Contains(HasSubstr("1 of 1 launches have schedules as measured")));
}

TEST_F(MeasuredScheduleTest, ASlowerOneIsNotTaken) {
  know(form_of(predicted.launches[0].schedule), 10, times.machine, build());
  know(form_of(other), 20, times.machine, build());
  Program program = predicted;
  take_measured_schedules(program, target, times);
  EXPECT_EQ(schedule_of(program), schedule_of(predicted));
}

TEST_F(MeasuredScheduleTest, TimesOfOtherMachinesAndBuildsAreTold) {
  for (const auto& [machine, made] : {std::pair(std::string("another"), build()), {times.machine, "another"}}) {
    times.cache = {};
    know(form_of(other), 10, machine, made);
    Program program = predicted;
    take_measured_schedules(program, target, times);
    EXPECT_EQ(schedule_of(program), schedule_of(predicted));
    EXPECT_THAT(program.notes, Contains(HasSubstr("another machine or by another build")));
  }
}

TEST_F(MeasuredScheduleTest, WhatCannotBeEmittedIsLeftWithItsReason) {
  for (const char* form :
       {"schedule ", "schedule no_such_skeleton a=1", "schedule contraction nv=-3", "schedule contraction nv"}) {
    times.cache = {};
    know(form, 10, times.machine, build());
    Program program = predicted;
    take_measured_schedules(program, target, times);
    EXPECT_EQ(schedule_of(program), schedule_of(predicted)) << form;
    EXPECT_THAT(program.notes, Contains(HasSubstr("are not used"))) << form;
  }
}

TEST_F(MeasuredScheduleTest, AnUnknownKernelSaysNothing) {
  Program program = predicted;
  take_measured_schedules(program, target, times);
  EXPECT_THAT(program.notes, IsEmpty());
}

/// Times that were learned are known afterwards, and nothing is run again; on one target whatever the host is.
TEST(MeasuredAlgorithms, AreLearnedAndNotTimedAgain) {
  const TargetInfo avx512 = parse_target("cpu:avx512");
  Graph graph = build_zoo("resnet18", {.resolution = 64, .classes = 10});
  prepare(graph, {}, nullptr);
  AlgorithmRequest request;
  request.threads = 1, request.exact = true;
  const Program direct = lower_to_program(apply(graph, plan_graph(graph, avx512, {})), avx512, {.algorithms = request});
  request.exact = false, request.measure = true;

  std::map<std::string, double> learned;
  int runs = 0;
  LaunchTimes times;
  times.measure = [&](const std::vector<Program>& programs, int) {  // direct is slower than all others
    ++runs;
    std::vector<std::vector<std::vector<double>>> samples;
    for (size_t p = 0; p < programs.size(); ++p)
      samples.emplace_back(direct.launches.size(), std::vector<double>(3, p == 0 ? 9000. : 1000.));
    return samples;
  };
  times.known = [&](const Launch& launch, const std::string& name) -> std::optional<double> {
    const auto at = learned.find(launch.name + name);
    return at == learned.end() ? std::nullopt : std::optional(at->second);
  };
  times.learn = [&](const Launch& launch, const std::string& name, const std::vector<double>& ns) {
    learned[launch.name + name] = ns.at(0);
  };
  const auto chosen = [&] {
    Program program = direct;
    program.algorithms.clear();
    choose_algorithms(program, avx512, request, times);
    std::string names;
    for (const Algorithm& a : program.algorithms) names += a.name + " ";
    return names;
  };
  const std::string first = chosen();
  EXPECT_EQ(runs, 1);
  EXPECT_THAT(first, HasSubstr("f")) << "what was measured faster is taken";
  EXPECT_EQ(chosen(), first);
  EXPECT_EQ(runs, 1) << "all of it was known";
  learned.erase(learned.begin());
  EXPECT_EQ(chosen(), first);
  EXPECT_EQ(runs, 2) << "one that is not known is measured, with all others";
}

}  // namespace
}  // namespace opfuse
