// Schedules from a file of times: taken where this build measured them on this machine, left with a note elsewhere.
#include "driver/measured_schedules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "link/generators.hpp"
#include "ops/registry.hpp"
#include "testing/temporary_folder.hpp"

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

const std::string kConvolution =
    "graph (%x: f32[1,32,20,20], %w: f32[32,32,3,3]) { %y = conv(%x, %w) {pads = [1,1,1,1]} @\"c\" return %y }";

TEST(MeasuredAlgorithms, AreKeptAndNotTimedAgain) {
  const test::TemporaryFolder folder;
  CompilationOptions options;
  options.algorithms.measure = true;
  options.algorithms.threads = 1;
  options.timings = {folder.path("times.json")};
  Graph graph = parse_graph(kConvolution, ops());
  Compilation first(graph, host_target(), options);
  first.run_to(Milestone::lowered);
  const std::string kept = TimingCache::read(options.timings[0]).json();
  if (first.program.algorithms.empty() || first.program.algorithms[0].costs.size() < 2)
    GTEST_SKIP() << "no choice here";
  EXPECT_THAT(kept, HasSubstr("algorithm direct"));
  Compilation second(graph, host_target(), options);
  second.run_to(Milestone::lowered);
  EXPECT_EQ(TimingCache::read(options.timings[0]).json(), kept);
  EXPECT_EQ(second.program.algorithms[0].name, first.program.algorithms[0].name);
}

}  // namespace
}  // namespace opfuse
