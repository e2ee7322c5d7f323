// opfuse's seat in bench/peers.py: a child process that runs a model when it is told to, through the public API alone,
// with the caller's arrays bound, and times itself.
//
//   opfuse_turns MODEL.onnx|X.opf [--threads N] [--contexts N] [--target T] [--dim NAME=SIZE] [--unfused] [--exact]
//
// One line per request, one line per answer, fields separated by tabs; the first answer comes unasked:
//   (start): ok VERSION MILLISECONDS, from the file to a runnable model
//
//   input NAME TYPE SIZES FILE: ok; binds an array to every context (elements in C order, TYPE f32, SIZES 1,3,8,8)
//
//   run COUNT: ok NS NS ...; runs the first context COUNT times
//
//   images SECONDS: ok COUNT NS; runs all contexts, each in a thread of its own, for that long
//
//   outputs: ok NAME NAME ...
//
//   output NAME FILE: ok TYPE SIZES; writes the output of the last run
//
// A request that fails is answered by `error TEXT`. End of input ends the program.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "opfuse/opfuse.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

int64_t nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

struct Array {
  opfuse::DType dtype = opfuse::DType::unknown;
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  opfuse::ArrayView view() { return {dtype, bytes.data(), shape}; }
};

/// The types that a peer's arrays have; sizes in bytes.
struct Kind {
  std::string name;
  opfuse::DType dtype;
  size_t size;
};
const Kind kKinds[] = {{"f32", opfuse::DType::f32, 4}, {"f64", opfuse::DType::f64, 8},
                       {"f16", opfuse::DType::f16, 2}, {"i8", opfuse::DType::i8, 1},
                       {"u8", opfuse::DType::u8, 1},   {"i32", opfuse::DType::i32, 4},
                       {"i64", opfuse::DType::i64, 8}, {"bool", opfuse::DType::boolean, 1}};

const Kind& kind_of(opfuse::DType dtype) {
  for (const Kind& kind : kKinds)
    if (kind.dtype == dtype) return kind;
  throw std::runtime_error("an array has an element type that this program does not exchange");
}

size_t bytes_of(const Kind& kind, const std::vector<int64_t>& shape) {
  size_t bytes = kind.size;
  for (int64_t dim : shape) bytes *= static_cast<size_t>(dim);
  return bytes;
}

Array read_array(const std::string& type, const std::string& sizes, const std::string& path) {
  Array array;
  for (const Kind& kind : kKinds)
    if (kind.name == type) array.dtype = kind.dtype;
  std::stringstream text(sizes);
  for (std::string size; std::getline(text, size, ',');) array.shape.push_back(std::stoll(size));
  std::ifstream file(path, std::ios::binary);
  array.bytes.assign(std::istreambuf_iterator<char>(file), {});
  if (array.bytes.size() != bytes_of(kind_of(array.dtype), array.shape))
    throw std::runtime_error(path + " does not hold " + type + "[" + sizes + "]");
  return array;
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
    if (verb == "input") return input(request.at(1), read_array(request.at(2), request.at(3), request.at(4)));
    if (verb == "run") return run(std::stoi(request.at(1)));
    if (verb == "images") return images(std::stod(request.at(1)));
    if (verb == "outputs") return outputs();
    if (verb == "output") return output(request.at(1), request.at(2));
    throw std::runtime_error("unknown request " + verb);
  }

 private:
  struct Seat {
    opfuse::Context context;
    std::map<std::string, Array> outputs;
  };

  Words input(const std::string& name, Array given) {
    Array& array = inputs_[name] = std::move(given);
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
        Array& array = seat.outputs[info.name];
        array = {own.dtype, own.shape, std::vector<char>(bytes_of(kind_of(own.dtype), own.shape))};
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
    const Array& array = seats_.front().outputs.at(name);
    std::ofstream file(path, std::ios::binary);
    file.write(array.bytes.data(), static_cast<std::streamsize>(array.bytes.size()));
    if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
    std::string sizes;
    for (int64_t size : array.shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    return {kind_of(array.dtype).name, sizes};
  }

  opfuse::Executable executable_;
  std::map<std::string, Array> inputs_;
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
