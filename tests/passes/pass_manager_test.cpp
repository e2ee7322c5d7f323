// The pass manager records, dumps, verifies and blames the right pass.
#include "passes/pass_manager.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/fail.hpp"
#include "ir/fir_file.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"

namespace opfuse {
namespace {

namespace fs = std::filesystem;

Graph sample() {
  return parse_graph("graph (%x: f32[2]) { %k = const rand<1> : f32[2,2] %a = relu(%x) %y = matmul(%a, %k) return %y }",
                     ops());
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("opfuse_pass_manager_test_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Pass nothing() {
  return {"nothing", "", [](Graph&, PassContext&) { return false; }, {}};
}
Pass add_exp() {
  return {"add-exp",
          "",
          [](Graph& g, PassContext&) {
            Value* old = g.outputs()[0];
            Node* made = g.add_node(op_named("exp"), AttrMap{}, {old});
            g.set_outputs({made->output()});
            return true;
          },
          {}};
}

Error failure(const std::vector<Pass>& passes, const PassOptions& options) {
  Graph graph = sample();
  try {
    run_passes(graph, passes, options);
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return fail(E::internal, "no error");
}

TEST(PassManager, RecordsWhatEachPassDid) {
  Graph graph = sample();
  const PassRun run = run_passes(graph, {nothing(), add_exp()});
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_FALSE(run.records[0].changed);
  EXPECT_TRUE(run.records[1].changed);
  EXPECT_EQ(run.records[1].nodes_after, 3u);
  EXPECT_TRUE(run.changed());
}

TEST(PassManager, DumpsOnlyChangesAndTheyReadBack) {
  const Folder folder;
  Graph graph = sample();
  run_passes(graph, {nothing(), add_exp()}, {.dump_dir = folder.path.string()});
  EXPECT_TRUE(fs::exists(folder.path / "00-input.fir"));
  EXPECT_FALSE(fs::exists(folder.path / "01-nothing.fir"));
  EXPECT_TRUE(equal(read_fir((folder.path / "01-add-exp.fir").string(), ops()), graph));
}

TEST(PassManager, ALaterRunGoesOnWithTheDumpsOfAnEarlierOne) {
  const Folder folder;
  Graph graph = sample();
  const Graph first = graph.clone();
  const PassRun run = run_passes(graph, {add_exp()}, {.dump_dir = folder.path.string()});
  EXPECT_EQ(run.next_dump, 2);
  run_passes(graph, {add_exp()},
             {.dump_dir = folder.path.string(), .dump_start = {"fused", "the plan applied"}, .first_dump = 2});
  EXPECT_TRUE(fs::exists(folder.path / "02-fused.fir"));
  EXPECT_TRUE(equal(read_fir((folder.path / "03-add-exp.fir").string(), ops()), graph));
  EXPECT_TRUE(equal(read_fir((folder.path / "00-input.fir").string(), ops()), first));
}

TEST(PassManager, CatchesAPassThatLies) {
  Pass liar = add_exp();
  liar.run = [run = liar.run](Graph& g, PassContext& c) { return run(g, c), false; };
  const Folder folder;
  EXPECT_NE(failure({liar}, {.reproducer_dir = folder.path.string()}).diagnostic().message.find("without saying so"),
            std::string::npos);
}

TEST(PassManager, CatchesAnInvalidGraphAndWritesAReproducer) {
  const Folder folder;
  const Pass breaker = {"breaker",
                        "",
                        [](Graph& g, PassContext&) {
                          g.nodes()[1]->output()->type.dtype = DType::i8;
                          return true;
                        },
                        {}};
  const Error e = failure({breaker}, {.reproducer_dir = folder.path.string()});
  EXPECT_EQ(e.diagnostic().name, "internal");
  EXPECT_EQ(e.diagnostic().during, "breaker");
  const std::string path = fs::path(fs::directory_iterator(folder.path)->path()).replace_extension(".fir").string();
  EXPECT_NE(e.diagnostic().hint.find(path), std::string::npos) << e.what();
  EXPECT_EQ(parse_reproducer(read(path)).pass, "breaker");
  EXPECT_EQ(parse_reproducer(read(path)).target, "");
  EXPECT_EQ(parse_reproducer("// fir 1 | before pass join-chains | target cpu:avx2\n").pass, "join-chains");
  EXPECT_EQ(parse_reproducer("// fir 1 | before pass join-chains | target cpu:avx2\n").target, "cpu:avx2");
  EXPECT_TRUE(equal(read_fir(path, ops()), sample()));
}

TEST(PassManager, TurnsForeignExceptionsIntoInternalErrors) {
  const Folder folder;
  const Pass thrower = {"thrower", "", [](Graph&, PassContext&) -> bool { throw std::out_of_range("vector::at"); }, {}};
  EXPECT_NE(failure({thrower}, {.reproducer_dir = folder.path.string()})
                .diagnostic()
                .message.find("thrower failed: vector::at"),
            std::string::npos);
  EXPECT_NE(failure({thrower}, {.reproducer_dir = "/dev/null/folder"}).diagnostic().hint.find("no reproducer"),
            std::string::npos);
}

TEST(PassManager, WritesReproducersToTheUsersStateFolder) {
  const Folder folder;
  ::setenv("XDG_STATE_HOME", folder.path.c_str(), 1);
  const Pass thrower = {"thrower", "", [](Graph&, PassContext&) -> bool { throw std::out_of_range("vector::at"); }, {}};
  const Error e = failure({thrower}, {});
  ::unsetenv("XDG_STATE_HOME");
  EXPECT_NE(e.diagnostic().hint.find((folder.path / "opfuse" / "opfuse-repro-").string()), std::string::npos)
      << e.what();
  EXPECT_TRUE(fs::exists(folder.path / "opfuse"));
  for (const auto& entry : fs::directory_iterator("."))
    EXPECT_FALSE(entry.path().filename().string().starts_with("opfuse-repro-"));
}

TEST(PassManager, LeavesUserErrorsAsTheyAre) {
  const Pass user = {"user", "", [](Graph&, PassContext&) -> bool { throw fail(E::shape_mismatch, "yours"); }, {}};
  const Error e = failure({user}, {});
  EXPECT_EQ(e.diagnostic().name, "shape_mismatch");
  EXPECT_EQ(e.diagnostic().during, "user");
  EXPECT_EQ(e.diagnostic().hint, "");
}

TEST(PassManager, RepeatsAGroupUntilItIsStable) {
  Graph graph = sample();
  int left = 3;
  const Pass some = {"some", "", [&](Graph& g, PassContext& c) { return left-- > 0 && add_exp().run(g, c); }, {}};
  const PassRun run = run_passes(graph, {until_stable("group", {some, nothing()})});
  EXPECT_EQ(run.records.size(), 8u);
  EXPECT_EQ(graph.nodes().size(), 5u);
  EXPECT_NE(failure({until_stable("endless", {add_exp()})}, {}).diagnostic().message.find("endless still change"),
            std::string::npos);
}

TEST(Passes, AreNamedAndSummarised) {
  std::set<std::string> names;
  for (const Pass& pass : all_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second);
    EXPECT_GT(pass.summary.size(), 10u);
    EXPECT_EQ(pass_named(pass.name).name, pass.name);
  }
  EXPECT_THROW(pass_named("fold-constant"), Error);
}

}  // namespace
}  // namespace opfuse
