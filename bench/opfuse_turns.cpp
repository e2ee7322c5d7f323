// opfuse's seat in bench/peers.py: a child process that runs a model when it is told to, through the public API alone,
// with the caller's arrays bound, and times itself.
//
//   opfuse_turns MODEL.onnx|X.opf [--threads N] [--contexts N] [--target T] [--dim NAME=SIZE] [--unfused] [--exact]
//
// One line per request, one line per answer, fields separated by tabs; the first answer comes unasked:
//   (start)              ok  VERSION  MILLISECONDS from the file to a runnable model
//   input NAME FILE      ok                      bind the .npy array (to every context)
//   run COUNT            ok  NS  NS  ...         run the first context COUNT times
//   images SECONDS       ok  COUNT  NS           run all contexts, each in a thread of its own, for that long
//   outputs              ok  NAME  NAME  ...
//   output NAME FILE     ok                      write the output of the last run
// A request that fails is answered by `error TEXT`. End of input ends the program.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <list>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "npy.hpp"
#include "opfuse/opfuse.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

int64_t nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

struct Arguments {
  std::string model, target;
  int threads = 1, contexts = 1;
  std::map<std::string, int64_t> dims;
  bool unfused = false, exact = false;
};

void parse_dimension(const std::string& text, Arguments& arguments) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) throw std::runtime_error("--dim wants NAME=SIZE");
  arguments.dims[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      arguments.model = word;
      continue;
    }
    if (word == "--unfused") {
      arguments.unfused = true;
      continue;
    }
    if (word == "--exact") {
      arguments.exact = true;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(word + " wants a value");
    const std::string value = argv[++i];
    if (word == "--threads")
      arguments.threads = std::stoi(value);
    else if (word == "--contexts")
      arguments.contexts = std::stoi(value);
    else if (word == "--target")
      arguments.target = value;
    else if (word == "--dim")
      parse_dimension(value, arguments);
    else
      throw std::runtime_error("unknown flag " + word);
  }
  if (arguments.model.empty() || arguments.threads < 1 || arguments.contexts < 1)
    throw std::runtime_error(
        "usage: opfuse_turns MODEL [--threads N] [--contexts N] [--target T] [--dim NAME=SIZE] [--unfused] [--exact]");
  return arguments;
}

opfuse::Executable make_executable(const Arguments& arguments) {
  if (arguments.model.ends_with(".opf")) return opfuse::Executable::load(arguments.model);
  const opfuse::Model model = opfuse::Model::load(arguments.model);
  const opfuse::Target target =
      arguments.target.empty() ? opfuse::Target::host() : opfuse::Target::named(arguments.target);
  opfuse::CompileOptions options;
  options.dims = arguments.dims;
  options.fused = !arguments.unfused;
  options.exact = arguments.exact;
  options.threads = arguments.threads;
  if (arguments.unfused) return opfuse::compile(model, target, options);
  const opfuse::Fused fused = opfuse::apply(model, opfuse::plan(model, target));
  return opfuse::compile(fused.model, target, options);
}

/// The contexts of one executable. Inputs are shared by all of them, outputs are each context's own.
class Session {
 public:
  explicit Session(const Arguments& arguments) : executable_(make_executable(arguments)) {
    for (int i = 0; i < arguments.contexts; ++i)
      seats_.push_back({executable_.create_context({.threads = arguments.threads}), {}});
  }

  Words answer(const Words& request) {
    const std::string& verb = request.at(0);
    if (verb == "input") return input(request.at(1), request.at(2));
    if (verb == "run") return run(std::stoi(request.at(1)));
    if (verb == "images") return images(std::stod(request.at(1)));
    if (verb == "outputs") return outputs();
    if (verb == "output") return output(request.at(1), request.at(2));
    throw std::runtime_error("unknown request " + verb);
  }

 private:
  struct Seat {
    opfuse::Context context;
    std::map<std::string, bench::Array> outputs;
  };

  Words input(const std::string& name, const std::string& path) {
    bench::Array& array = inputs_[name] = bench::read_npy(path);
    for (Seat& seat : seats_) seat.context.bind(name, array.view());
    outputs_bound_ = false;
    return {};
  }

  // Output shapes are known after a run, so the first one uses the context's own arrays.
  void bind_outputs() {
    if (outputs_bound_) return;
    for (Seat& seat : seats_) {
      seat.context.run();
      for (const opfuse::TensorInfo& info : executable_.outputs()) {
        const opfuse::ArrayView own = seat.context.output(info.name);
        size_t bytes = bench::element_size(own.dtype);
        for (int64_t dim : own.shape) bytes *= static_cast<size_t>(dim);
        bench::Array& array = seat.outputs[info.name];
        array = {own.dtype, own.shape, std::vector<char>(bytes)};
        seat.context.bind(info.name, array.view());
      }
      seat.context.run();
    }
    outputs_bound_ = true;
  }

  Words run(int count) {
    bind_outputs();
    Words times;
    std::vector<int64_t> nanoseconds(static_cast<size_t>(count));
    opfuse::Context& context = seats_.front().context;
    for (int64_t& time : nanoseconds) {
      const Clock::time_point start = Clock::now();
      context.run();
      time = nanoseconds_since(start);
    }
    for (int64_t time : nanoseconds) times.push_back(std::to_string(time));
    return times;
  }

  Words images(double seconds) {
    bind_outputs();
    const int64_t limit = static_cast<int64_t>(seconds * 1e9);
    std::atomic<int64_t> done{0};
    std::vector<std::exception_ptr> problems(seats_.size());
    const Clock::time_point start = Clock::now();
    auto work = [&](opfuse::Context& context, std::exception_ptr& problem) {
      try {
        for (; nanoseconds_since(start) < limit; ++done) context.run();
      } catch (...) {
        problem = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    size_t index = 0;
    for (Seat& seat : seats_) threads.emplace_back(work, std::ref(seat.context), std::ref(problems[index++]));
    for (std::thread& thread : threads) thread.join();
    const int64_t elapsed = nanoseconds_since(start);
    for (const std::exception_ptr& problem : problems)
      if (problem) std::rethrow_exception(problem);
    return {std::to_string(done), std::to_string(elapsed)};
  }

  Words outputs() const {
    Words names;
    for (const opfuse::TensorInfo& info : executable_.outputs()) names.push_back(info.name);
    return names;
  }

  Words output(const std::string& name, const std::string& path) {
    bind_outputs();
    bench::write_npy(path, seats_.front().outputs.at(name).view());
    return {};
  }

  opfuse::Executable executable_;
  std::map<std::string, bench::Array> inputs_;
  std::list<Seat> seats_;
  bool outputs_bound_ = false;
};

void reply(const std::string& status, const Words& fields) {
  std::cout << status;
  for (std::string field : fields) {
    for (char& letter : field)
      if (letter == '\n' || letter == '\t') letter = ' ';
    std::cout << '\t' << field;
  }
  std::cout << '\n' << std::flush;
}

Words split(const std::string& line) {
  Words words;
  std::stringstream stream(line);
  for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Clock::time_point start = Clock::now();
    Session session(parse(argc, argv));
    reply("ok", {opfuse::version(), std::to_string(static_cast<double>(nanoseconds_since(start)) * 1e-6)});
    for (std::string line; std::getline(std::cin, line);) {
      if (line.empty()) continue;
      try {
        reply("ok", session.answer(split(line)));
      } catch (const std::exception& problem) {
        reply("error", {problem.what()});
      }
    }
  } catch (const std::exception& problem) {
    reply("error", {problem.what()});
    return 1;
  }
}
