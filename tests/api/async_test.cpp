// Runs in another thread: the results of run(), and its errors where they are asked for.
#include "opfuse/async.hpp"

#include <gtest/gtest.h>

#include "opfuse/network.hpp"

namespace opfuse {
namespace {

Executable doubled() {
  Network net;
  auto x = net.input("x", {"4", "8"});
  net.output("y", net.add(x, x));
  return compile(net.model(), Target::host());
}

TEST(Async, GivesWhatRunGives) {
  const Executable exe = doubled();
  Context first = exe.create_context({.threads = 1}), second = exe.create_context({.threads = 1});
  std::vector<float> x(32), y(32), z(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  first.bind("x", view(x, {4, 8}));
  first.bind("y", view(y, {4, 8}));
  second.bind("x", view(x, {4, 8}));
  second.bind("y", view(z, {4, 8}));
  std::future<void> one = run_async(first), other = run_async(second);
  one.get();
  other.get();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 2 * x[i]);
  EXPECT_EQ(y, z);
}

TEST(Async, ThrowsWhereTheResultIsAskedFor) {
  const Executable exe = doubled();
  Context context = exe.create_context({.threads = 1});
  std::future<void> run = run_async(context);
  try {
    run.get();
    ADD_FAILURE() << "an input is not bound";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().code, "E0602");
  }
}

}  // namespace
}  // namespace opfuse
